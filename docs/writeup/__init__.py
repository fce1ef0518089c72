"""What the templates of the write-up call: values and tables of a kept study; `docs/write_up.py` renders them."""
