"""What all rooms use: errors, files of strangers, text of pages, what is installed. It knows no FMI."""
