"""From the records of launches to statistics, tables and a report."""
