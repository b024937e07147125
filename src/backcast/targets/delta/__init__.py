"""Delta tables as targets: a stage is a small Delta table in the folder of the live one; publish is one transaction."""
