"""True fakes: the same test-suite runs over them and over the real servers."""
