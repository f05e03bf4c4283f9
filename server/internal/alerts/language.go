package alerts

// Language checks the conditions and the templates of a configuration file.
type Language struct{}

// CheckCondition implements config.Language.
func (Language) CheckCondition(text string) error { return CheckCondition(text) }

// CheckTemplate implements config.Language.
func (Language) CheckTemplate(text string) error { return CheckTemplate(text) }

// UnknownMetrics implements config.Language.
func (Language) UnknownMetrics(condition, prefix string) []string {
	return UnknownMetrics(condition, prefix)
}
