"""The parts of `experiments.bench`: one file for each section, and the peers that it measures."""
