"""What a plan says of its survey: where it is, its columns, its privacy unit, its checks."""
