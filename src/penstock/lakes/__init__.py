"""What tables of Delta and Iceberg share, and the catalogs that name them."""
