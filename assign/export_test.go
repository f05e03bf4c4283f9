package assign

// Topic is the topic of the notifications of rows.
func Topic(c Config) string { return c.withDefaults().topic() }
