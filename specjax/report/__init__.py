"""From the results of a sweep to tables, figures and pages."""
