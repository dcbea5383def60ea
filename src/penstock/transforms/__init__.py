"""What happens between sources and sinks. One file per kind of step; `penstock.catalog` lists them."""
