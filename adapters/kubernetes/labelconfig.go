package kubernetes

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/exactly-one/tenure"
)

// LabelConfig configures a Labeler. Pods, Pod and Selector are required.
type LabelConfig struct {
	// Pods has the pods of the namespace, as of a clientset's CoreV1().Pods. It needs
	// the verbs list and patch.
	Pods corev1.PodInterface
	// Pod is the name of this pod. Kubernetes provides it as metadata.name.
	Pod string
	// Selector selects the pods of the role's candidates, such as "app=billing". The
	// leader removes the label from all of them but its own.
	Selector string
	// Label is the key of the label; its value is "true". Default: tenure.dev/leads- with
	// the name of the role. If the name cannot be part of a label, Label is required,
	// because manifests repeat it.
	Label string
	// ResyncInterval is how often the leader checks the labels, in case a late request
	// of a former leader, or an operator, has changed them. Default: 30 s.
	ResyncInterval time.Duration
	// RequestTimeout limits each request. Default: 5 s.
	RequestTimeout time.Duration
}

// labelPrefix and the name of a role are the default label.
const labelPrefix = "tenure.dev/leads-"

func (c LabelConfig) withDefaults(role string) LabelConfig {
	c.Label = cmp.Or(c.Label, labelPrefix+role)
	c.ResyncInterval = cmp.Or(c.ResyncInterval, 30*time.Second)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 5*time.Second)
	return c
}

// validate checks a configuration after its defaults are set.
func (c LabelConfig) validate() error {
	if faults := validation.IsQualifiedName(c.Label); len(faults) > 0 {
		return invalidLabel("%q is no key of a label: set LabelConfig.Label: %s", c.Label, strings.Join(faults, "; "))
	}
	if faults := validation.IsDNS1123Subdomain(c.Pod); len(faults) > 0 {
		return invalidLabel("%q is no name of a pod: %s", c.Pod, strings.Join(faults, "; "))
	}
	selector, err := labels.Parse(c.Selector)
	switch {
	case err != nil:
		return invalidLabel("%q is no selector: %v", c.Selector, err)
	case selector.Empty():
		return invalidLabel("the selector is empty: select the pods that may lead")
	case c.Pods == nil:
		return invalidLabel("the client for the pods is missing")
	case c.ResyncInterval < 0 || c.RequestTimeout < 0:
		return invalidLabel("the durations must not be negative")
	}
	return nil
}

func invalidLabel(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}
