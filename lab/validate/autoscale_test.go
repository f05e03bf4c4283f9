package validate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// scaledObject and triggerAuthentication are what the manifests use of KEDA's
// kinds, whose module would bring hundreds of others.
type scaledObject struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`

	Spec struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		MinReplicaCount *int32        `json:"minReplicaCount"`
		MaxReplicaCount *int32        `json:"maxReplicaCount"`
		PollingInterval *int32        `json:"pollingInterval"`
		Triggers        []kedaTrigger `json:"triggers"`
		Advanced        struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior *autoscaling.HorizontalPodAutoscalerBehavior `json:"behavior"`
			} `json:"horizontalPodAutoscalerConfig"`
		} `json:"advanced"`
	} `json:"spec"`
}

type kedaTrigger struct {
	Type              string                       `json:"type"`
	Name              string                       `json:"name"`
	MetricType        autoscaling.MetricTargetType `json:"metricType"`
	Metadata          map[string]string            `json:"metadata"`
	AuthenticationRef *struct {
		Name string `json:"name"`
	} `json:"authenticationRef"`
}

type triggerAuthentication struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`

	Spec struct {
		SecretTargetRef []struct {
			Parameter string `json:"parameter"`
			Name      string `json:"name"`
			Key       string `json:"key"`
		} `json:"secretTargetRef"`
	} `json:"spec"`
}

// triggerKeys are the settings of KEDA's scalers that the manifests may use: those
// that must be there, and those that may.
var triggerKeys = map[string]struct{ required, optional []string }{
	"postgresql": {required: []string{"query", "targetQueryValue"}},
	"prometheus": {required: []string{"serverAddress", "query", "threshold"}, optional: []string{"ignoreNullValues"}},
}

// TestAutoscalersKeepAStandby: each keeps a leader and a standby, asks for what exists, and
// removes pods slowly.
func TestAutoscalersKeepAStandby(t *testing.T) {
	checked := 0
	for file, objects := range readManifests(t) {
		for _, object := range objects {
			var found []string
			switch object := object.(type) {
			case *scaledObject:
				found = faultsOfScaledObject(object, objects)
			case *autoscaling.HorizontalPodAutoscaler:
				found = faultsOfAutoscaler(object, objects)
			default:
				continue
			}
			checked++
			for _, fault := range found {
				t.Errorf("%s: %s: %s", file, object.GetName(), fault)
			}
		}
	}
	if checked != 3 {
		t.Errorf("%d autoscalers were checked", checked)
	}
}

func faultsOfScaledObject(s *scaledObject, others []meta.Object) []string {
	faults := faultsOfScaling(s.Spec.ScaleTargetRef.Name, s.Spec.MinReplicaCount, s.Spec.MaxReplicaCount,
		s.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior)
	names := map[string]bool{}
	for _, trigger := range s.Spec.Triggers {
		if trigger.Name == "" || names[trigger.Name] {
			faults = append(faults, fmt.Sprintf("the name %q of a trigger is none, or there twice", trigger.Name))
		}
		names[trigger.Name] = true
		for _, fault := range faultsOfTrigger(trigger, others) {
			faults = append(faults, trigger.Name+": "+fault)
		}
	}
	if len(names) == 0 {
		faults = append(faults, "no triggers")
	}
	return faults
}

func faultsOfScaling(target string, least, most *int32, behavior *autoscaling.HorizontalPodAutoscalerBehavior) []string {
	var faults []string
	if target == "" {
		faults = append(faults, "it scales nothing")
	}
	if least == nil || *least < 2 {
		faults = append(faults, "there may be no standby")
	}
	if most == nil || least != nil && *most <= *least {
		faults = append(faults, "it cannot scale")
	}
	if behavior == nil || behavior.ScaleDown == nil || behavior.ScaleDown.StabilizationWindowSeconds == nil || len(behavior.ScaleDown.Policies) == 0 {
		faults = append(faults, "nothing slows the removal of pods")
	}
	return faults
}

func faultsOfTrigger(trigger kedaTrigger, others []meta.Object) []string {
	keys, known := triggerKeys[trigger.Type]
	if !known {
		return []string{fmt.Sprintf("unknown type %q", trigger.Type)}
	}
	var faults []string
	if trigger.MetricType != autoscaling.AverageValueMetricType {
		faults = append(faults, "a total is to be divided by the number of pods: AverageValue")
	}
	for _, key := range keys.required {
		value := trigger.Metadata[key]
		if number, err := strconv.ParseFloat(value, 64); value == "" || key != "query" && key != "serverAddress" && (err != nil || number <= 0) {
			faults = append(faults, fmt.Sprintf("%s is %q", key, value))
		}
	}
	for key := range trigger.Metadata {
		if !slices.Contains(append(keys.required, keys.optional...), key) {
			faults = append(faults, "unknown setting "+key)
		}
	}
	if trigger.Type == "postgresql" && !hasSecret(trigger, others) {
		faults = append(faults, "the connection string is no secret")
	}
	return faults
}

// hasSecret reports whether a trigger is authenticated by a connection string from
// a secret.
func hasSecret(trigger kedaTrigger, others []meta.Object) bool {
	for _, object := range others {
		authentication, ok := object.(*triggerAuthentication)
		if !ok || trigger.AuthenticationRef == nil || trigger.AuthenticationRef.Name != authentication.Name {
			continue
		}
		for _, ref := range authentication.Spec.SecretTargetRef {
			if ref.Parameter == "connection" && ref.Name != "" && ref.Key != "" {
				return true
			}
		}
	}
	return false
}

func faultsOfAutoscaler(a *autoscaling.HorizontalPodAutoscaler, others []meta.Object) []string {
	faults := faultsOfScaling(a.Spec.ScaleTargetRef.Name, a.Spec.MinReplicas, &a.Spec.MaxReplicas, a.Spec.Behavior)
	for _, metric := range a.Spec.Metrics {
		switch {
		case metric.Type != autoscaling.PodsMetricSourceType || metric.Pods == nil:
			faults = append(faults, "a metric is none of pods")
		case metric.Pods.Target.Type != autoscaling.AverageValueMetricType || metric.Pods.Target.AverageValue.IsZero():
			faults = append(faults, metric.Pods.Metric.Name+" has no average to aim at")
		case !isAdapted(metric.Pods.Metric.Name, others):
			faults = append(faults, "the adapter does not serve "+metric.Pods.Metric.Name)
		}
	}
	if len(a.Spec.Metrics) == 0 {
		faults = append(faults, "no metrics")
	}
	return faults
}

// adapterRules is what the manifests use of the configuration of prometheus-adapter.
type adapterRules struct {
	Rules []struct {
		SeriesQuery string `json:"seriesQuery"`
		Resources   struct {
			Overrides map[string]struct {
				Resource string `json:"resource"`
			} `json:"overrides"`
		} `json:"resources"`
		MetricsQuery string `json:"metricsQuery"`
	} `json:"rules"`
}

var seriesName = regexp.MustCompile(`__name__=~"([^"]*)"`)

// isAdapted reports whether the adapter's rules serve a metric of pods.
func isAdapted(metric string, others []meta.Object) bool {
	for _, object := range others {
		config, ok := object.(*core.ConfigMap)
		if !ok {
			continue
		}
		var adapter adapterRules
		if err := yaml.UnmarshalStrict([]byte(config.Data["config.yaml"]), &adapter); err != nil {
			return false
		}
		for _, rule := range adapter.Rules {
			pattern := seriesName.FindStringSubmatch(rule.SeriesQuery)
			if pattern == nil || rule.MetricsQuery == "" || rule.Resources.Overrides["pod"].Resource != "pod" ||
				rule.Resources.Overrides["namespace"].Resource != "namespace" {
				continue
			}
			if match, err := regexp.MatchString("^(?:"+pattern[1]+")$", metric); err == nil && match {
				return true
			}
		}
	}
	return false
}

// TestFaultsOfAutoscalersAreFound: what the checks are for.
func TestFaultsOfAutoscalersAreFound(t *testing.T) {
	const metadata = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: worker}\n"
	const scaling = "scaleTargetRef: {name: worker}, minReplicaCount: 2, maxReplicaCount: 9, advanced: {horizontalPodAutoscalerConfig: " +
		"{behavior: {scaleDown: {stabilizationWindowSeconds: 60, policies: [{type: Pods, value: 1, periodSeconds: 60}]}}}}"
	const trigger = `type: prometheus, name: jobs, metricType: AverageValue, metadata: {serverAddress: "http://p", query: up, threshold: "8"`
	for name, test := range map[string]struct{ spec, want string }{
		"nothing":             {scaling + ", triggers: [{" + trigger + "}}]", ""},
		"to zero":             {strings.Replace(scaling, "minReplicaCount: 2", "minReplicaCount: 0", 1) + ", triggers: [{" + trigger + "}}]", "no standby"},
		"no room":             {strings.Replace(scaling, "maxReplicaCount: 9", "maxReplicaCount: 2", 1) + ", triggers: [{" + trigger + "}}]", "cannot scale"},
		"hasty":               {strings.Replace(scaling, "stabilizationWindowSeconds: 60, ", "", 1) + ", triggers: [{" + trigger + "}}]", "slows"},
		"no triggers":         {scaling, "no triggers"},
		"unknown setting":     {scaling + ", triggers: [{" + trigger + `, treshold: "1"}}]`, "treshold"},
		"no threshold":        {scaling + ", triggers: [{" + strings.Replace(trigger, `"8"`, `"many"`, 1) + "}}]", "threshold"},
		"a value":             {scaling + ", triggers: [{" + strings.Replace(trigger, "AverageValue", "Value", 1) + "}}]", "AverageValue"},
		"an open database":    {scaling + `, triggers: [{type: postgresql, name: jobs, metricType: AverageValue, metadata: {query: SELECT 1, targetQueryValue: "8"}}]`, "secret"},
		"another name's twin": {scaling + ", triggers: [{" + trigger + "}}, {" + trigger + "}}]", "twice"},
	} {
		object, err := decode([]byte(metadata + "spec: {" + test.spec + "}\n"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		found := strings.Join(faultsOfScaledObject(object.(*scaledObject), nil), "; ")
		if test.want == "" && found != "" || !strings.Contains(found, test.want) {
			t.Errorf("%s: got %q, want %q", name, found, test.want)
		}
	}
}
