"""Published numbers, one file a source; `PAPERS` maps the name of each file to its claims."""

from experiments.papers import blog, leviathan2023

PAPERS = {
    module.__name__.rpartition(".")[2]: module.PAPER
    for module in (leviathan2023, blog)
}
