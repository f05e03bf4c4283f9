package alerts

// Language checks the conditions and the templates of a configuration file.
type Language struct{}

// CheckCondition implements config.Language.
func (Language) CheckCondition(text string) error { return CheckCondition(text) }

// CheckTemplate implements config.Language.
func (Language) CheckTemplate(text string) error { return CheckTemplate(text) }

// Doubts names the metrics of a condition that have a prefix of this program, or the given
// one, and that the program does not have.
func (Language) Doubts(condition, prefix string) []string {
	expression, err := parse(condition)
	if err != nil {
		return nil
	}
	return unknownMetrics(expression, prefix)
}
