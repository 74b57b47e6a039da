"""Published numbers, one file a source; `PAPERS` maps the name of each file to its claims."""

from experiments.papers import (
    blog, cai2024, chen2023, chen2024, daliri2024, faults, hu2025, jeon2024, khisti2025,
    leviathan2023, li2024, miao2023, rowan2025, stern2018, sun2023, sun2025, thomas2026,
    thomas2026b, timor2025, weng2025, yang2024, zhou2026)

PAPERS = {
    module.__name__.rpartition(".")[2]: module.PAPER
    for module in (
        stern2018, leviathan2023, chen2023, miao2023, sun2023, yang2024, cai2024, jeon2024,
        chen2024, li2024, daliri2024, sun2025, khisti2025, timor2025, hu2025, weng2025, rowan2025,
        zhou2026, thomas2026, thomas2026b, faults, blog)
}
