package record

import (
	"errors"
	"fmt"

	"github.com/exactly-one/tenure/processor"
)

// LogStart is the text for the start of a log.
const LogStart = "start"

// ParsePlace parses a position in a log, or its start.
func ParsePlace(text string) (processor.Cursor, error) {
	if text == LogStart {
		return processor.Cursor{}, nil
	}
	place, err := processor.ParseCursor(text)
	if err != nil {
		return processor.Cursor{}, fmt.Errorf("it must be %s or a position in the log as tenure processor show prints it, such as 742:1031", LogStart)
	}
	return place, nil
}

// ParseEvent parses an event's position in a log.
func ParseEvent(text string) (processor.Cursor, error) {
	place, err := processor.ParseCursor(text)
	if err != nil || place == (processor.Cursor{}) {
		return processor.Cursor{}, errors.New("it must be a position in the log as tenure processor show prints it, such as 742:1031")
	}
	return place, nil
}
