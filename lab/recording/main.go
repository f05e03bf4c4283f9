// Command recording draws a run of the demonstration as an animated picture. It reads
// what tenure demo -o json prints from standard input, and writes SVG to standard output:
//
//	tenure demo -o json --kill-every 3s | go run ./lab/recording -colors dark >demo-dark.svg
//
// The picture needs no program to be shown: CSS animates it, and does not for readers
// who prefer reduced motion.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := record(); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func record() error {
	colors := flag.String("colors", "light", "light or dark")
	flag.Parse()
	chosen, ok := palettes[*colors]
	if !ok || flag.NArg() > 0 {
		return errors.New("usage: recording [-colors light|dark] <EVENTS >PICTURE")
	}
	events, err := readEvents(os.Stdin)
	if err != nil {
		return err
	}
	picture, err := draw(events, chosen)
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(picture)
	return err
}
