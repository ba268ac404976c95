"""What all rooms use: errors, files of strangers, text of pages. It knows no FMI."""
