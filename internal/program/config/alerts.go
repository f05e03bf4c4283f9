package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/program/alerting"
	"github.com/exactly-one/tenure/internal/program/nearest"
	"github.com/exactly-one/tenure/internal/program/notifier"
)

// alertList is the list of tables of alerts.
const alertList = "alerts"

// Alerts are the rules of the file: nil if the file does not mention alerts, and empty
// for alerts = [].
func (f *File) Alerts() []alerting.Rule {
	if f == nil {
		return nil
	}
	count, ok := f.elements[alertList]
	if !ok {
		return nil
	}
	rules := make([]alerting.Rule, count)
	for i := range rules {
		table := fmt.Sprintf("%s[%d]", alertList, i)
		rules[i] = alerting.Rule{
			Name: f.text(table + ".name"), Condition: f.text(table + ".condition"), For: f.length(table + ".for"),
			Severity: f.text(table + ".severity"), Labels: f.named(table + ".labels."), Annotations: f.named(table + ".annotations."),
			Description: f.text(table + ".description"), Runbook: f.text(table + ".runbook"), Notify: f.texts(table + ".notify"),
		}
		if rules[i].Severity == "" {
			rules[i].Severity = defaultSeverity
		}
	}
	return rules
}

const defaultSeverity = "warning"

// Cluster returns the name of the cluster and the address of its dashboard, each empty if
// the file does not have it.
func (f *File) Cluster() (name, url string) {
	if f == nil {
		return "", ""
	}
	return f.text("cluster.name"), f.text("http.external_url")
}

// Notifiers are the notifiers of the file, sorted by their names.
func (f *File) Notifiers() []notifier.Config {
	if f == nil {
		return nil
	}
	var all []notifier.Config
	for _, name := range f.notifiers() {
		all = append(all, f.notifier(name))
	}
	return all
}

func (f *File) notifier(name string) notifier.Config {
	table := notifications + name
	value := func(key string) string { return f.text(table + "." + key) }
	kind := value("type")
	kind = cmp.Or(kind, name)
	perMinute, _ := f.lookup(table + ".per_minute").value.(int64)
	return notifier.Config{
		Name: name, Type: kind, URL: value("url"), URLFile: value("url_file"), Channel: value("channel"),
		RoutingKey: value("routing_key"), RoutingKeyFile: value("routing_key_file"),
		Secret: value("secret"), SecretFile: value("secret_file"),
		SMTP: value("smtp"), From: value("from"), To: f.texts(table + ".to"),
		Username: value("username"), Password: value("password"), PasswordFile: value("password_file"),
		PerMinute: int(perMinute),
	}
}

// Language is the server's own knowledge: PromQL, templates, and the metrics of the
// nodes.
type Language interface {
	CheckCondition(text string) error // a [*alerting.ConditionError] knows the place
	CheckTemplate(text string) error
	// UnknownMetrics returns the metrics of a condition that have a prefix of this
	// program, or the given one, and do not exist.
	UnknownMetrics(condition, prefix string) []string
}

// language understands conditions and templates; nil if the program cannot read them.
var language Language

// Speak makes the program check conditions and templates too. It must be called before a
// file is read.
func Speak(l Language) { language = l }

// promQL checks a condition.
func promQL(value any) error {
	text, _ := value.(string)
	if language == nil {
		return nil
	}
	return language.CheckCondition(text)
}

// template checks a label or an annotation. Both can be templates.
func template(value any) error {
	text, _ := value.(string)
	if language == nil {
		return nil
	}
	return language.CheckTemplate(text)
}

// milliseconds checks for a duration in whole milliseconds, to be kept exactly.
func milliseconds(value any) error {
	if length, ok := value.(time.Duration); ok && length%time.Millisecond != 0 {
		return errors.New("it must be in whole milliseconds")
	}
	return nil
}

// both checks one thing after the other.
func both(first, second func(any) error) func(any) error {
	return func(value any) error {
		if err := first(value); err != nil {
			return err
		}
		return second(value)
	}
}

// checkAlerts checks alerts and notifiers against each other.
func (r *reader) checkAlerts() {
	for i := range r.file.elements[alertList] {
		table := fmt.Sprintf("%s[%d]", alertList, i)
		r.required(table, "name", "condition")
		r.checkNames(table+".labels", alerting.CheckLabel)
		r.checkNames(table+".annotations", alerting.CheckAnnotation)
		for _, name := range []string{"description", "runbook"} {
			if own := r.file.lookup(table + "." + name); own.key != nil && r.file.set(table+".annotations."+name) {
				r.fault(own.at, "%s.%s is also one of its annotations: leave one out", table, name)
			}
		}
		notify := r.file.lookup(table + ".notify")
		targets, _ := notify.value.([]string)
		for _, target := range targets {
			r.checkAddress(notify, target)
		}
	}
	for _, name := range r.file.notifiers() {
		r.checkNotifier(name)
	}
	r.unique(alertList)
}

// checkNames checks the names in a table whose names the user chooses.
func (r *reader) checkNames(table string, check func(string) error) {
	for _, name := range slices.Sorted(maps.Keys(r.file.named(table + "."))) {
		if err := check(name); err != nil {
			r.fault(r.file.lookup(table+"."+quotedName(name)).at, "%s: %v", table, err)
		}
	}
}

// checkAddress checks whom an alert notifies: slack:#ops is the channel #ops of
// slack.
func (r *reader) checkAddress(notify setting, address string) {
	name, target, hasTarget := strings.Cut(address, ":")
	known := r.file.notifiers()
	if !slices.Contains(known, name) {
		hint := fmt.Sprintf("add [%s%s]", notifications, quotedName(name))
		if meant := nearest.Of(name, known); meant != "" {
			hint = fmt.Sprintf("did you mean %q?", meant)
		}
		r.fault(notify.at, "%s names the notifier %q, which is not configured; %s", notify.path, name, hint)
		return
	}
	if !hasTarget {
		return
	}
	if err := notifier.CheckTarget(r.file.notifier(name).Type, target); err != nil {
		r.fault(notify.at, "%s names %q, but %v", notify.path, address, err)
	}
}

// doubtfulAlerts warns of unknown metrics, of alerts with unread conditions, and of
// secrets visible to every reader of the file.
func (f *File) doubtfulAlerts() []string {
	notices := f.UnknownMetrics()
	if language == nil && len(f.Alerts()) > 0 {
		at := f.lookup(alertList + "[0].condition").at
		notices = append(notices, fmt.Sprintf("%s:%d: conditions and templates of alerts are not checked: only tenure-server reads them", f.name, at.line))
	}
	for _, s := range f.ordered() {
		if strings.HasPrefix(s.path, notifications) && s.key.secret == whole && s.template == "" {
			notices = append(notices, fmt.Sprintf("%s:%d: %s is written in the file; take it from the environment or from a separate file", f.name, s.at.line, s.path))
		}
	}
	return notices
}

// UnknownMetrics lists the alerts that can never fire because no node has their metric,
// with their lines.
func (f *File) UnknownMetrics() (unknown []string) {
	if language == nil {
		return nil
	}
	prefix := f.text("metrics.prefix")
	for i, rule := range f.Alerts() {
		condition := f.lookup(fmt.Sprintf("%s[%d].condition", alertList, i))
		for _, text := range language.UnknownMetrics(rule.Condition, prefix) {
			unknown = append(unknown, fmt.Sprintf("%s:%d: %s: %s", f.name, condition.at.line, condition.path, text))
		}
	}
	return unknown
}
