"""Models of a single series, one file each; what they need of libraries is loaded late."""
