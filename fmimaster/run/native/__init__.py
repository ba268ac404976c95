"""The kernel in C as an executor: it borrows the arrays and calls FMUs without Python."""
