"""What a person or a program reads: the only modules that print or write a report."""
