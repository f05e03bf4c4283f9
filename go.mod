module github.com/exactly-one/tenure

go 1.26

require github.com/google/uuid v1.6.0
