module github.com/exactly-one/tenure/cmd/tenure

go 1.26

require github.com/exactly-one/tenure v0.0.0

replace github.com/exactly-one/tenure => ../..
