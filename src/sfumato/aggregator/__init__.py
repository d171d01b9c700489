"""The aggregator: receives randomised reports, counts each batch once, and answers analysts. Trusted with nothing."""
