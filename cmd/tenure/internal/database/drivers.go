package database

import (
	_ "github.com/go-sql-driver/mysql"
	_ "modernc.org/sqlite"
)
