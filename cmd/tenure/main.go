// Command tenure elects leaders from the command line.
package main

func main() {}
