package doorbell

// Key is the SQL expression of a key.
const Key = key

// SlotOf returns the slot of a reader.
func SlotOf(l Line) int { return l.(*line).slot }
