"""How the admin writes moments: as they are told everywhere else, to the second, with their time zone."""

DATETIME_FORMAT = "Y-m-d H:i:s e"
DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
