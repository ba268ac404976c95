"""Functions and runs in processes of their own: started in milliseconds, ended by a deadline, survived when they crash."""
