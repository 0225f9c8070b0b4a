"""The words after `atoll sim`, one file each."""
