package validate

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

const manifests = root + "/deploy/kubernetes"

// kinds makes an empty object of each kind that the manifests use.
var kinds = map[string]func() meta.Object{
	"apps/v1 Deployment":            func() meta.Object { return &apps.Deployment{} },
	"v1 Service":                    func() meta.Object { return &core.Service{} },
	"policy/v1 PodDisruptionBudget": func() meta.Object { return &policy.PodDisruptionBudget{} },

	"v1 ServiceAccount":                        func() meta.Object { return &core.ServiceAccount{} },
	"rbac.authorization.k8s.io/v1 Role":        func() meta.Object { return &rbac.Role{} },
	"rbac.authorization.k8s.io/v1 RoleBinding": func() meta.Object { return &rbac.RoleBinding{} },

	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":        func() meta.Object { return &admission.ValidatingAdmissionPolicy{} },
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": func() meta.Object { return &admission.ValidatingAdmissionPolicyBinding{} },

	"autoscaling/v2 HorizontalPodAutoscaler": func() meta.Object { return &autoscaling.HorizontalPodAutoscaler{} },
	"v1 ConfigMap":                           func() meta.Object { return &core.ConfigMap{} },
	"keda.sh/v1alpha1 ScaledObject":          func() meta.Object { return &scaledObject{} },
	"keda.sh/v1alpha1 TriggerAuthentication": func() meta.Object { return &triggerAuthentication{} },
}

// decode reads one document into the type of its kind. A field that the type does
// not have, a value of another type and a key that is there twice are errors.
func decode(document []byte) (meta.Object, error) {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return nil, err
	}
	name := kind.APIVersion + " " + kind.Kind
	empty, known := kinds[name]
	if !known {
		return nil, fmt.Errorf("unknown kind %q", name)
	}
	object := empty()
	return object, yaml.UnmarshalStrict(document, object)
}

// readManifests reads all documents of all files, by file.
func readManifests(t *testing.T) map[string][]meta.Object {
	t.Helper()
	paths, err := filepath.Glob(manifests + "/*.yaml")
	if err != nil || len(paths) < 3 {
		t.Fatalf("%d manifests (%v)", len(paths), err)
	}
	all := map[string][]meta.Object{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			object, err := decode(document)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			all[filepath.Base(path)] = append(all[filepath.Base(path)], object)
		}
	}
	return all
}

// TestManifestsAreValid: each is what its kind may be, and holds to the rules of the house.
func TestManifestsAreValid(t *testing.T) {
	for file, objects := range readManifests(t) {
		t.Run(file, func(t *testing.T) {
			var pods []map[string]string // labels
			for _, object := range objects {
				if faults := validation.IsDNS1123Label(object.GetName()); faults != nil {
					t.Errorf("the name %q: %v", object.GetName(), faults)
				}
				if deployment, ok := object.(*apps.Deployment); ok {
					checkDeployment(t, deployment, objects)
					pods = append(pods, deployment.Spec.Template.Labels)
				}
			}
			for _, object := range objects {
				switch object := object.(type) {
				case *core.Service:
					checkSelected(t, object.Name, withoutLeader(object.Spec.Selector), pods)
				case *policy.PodDisruptionBudget:
					checkSelected(t, object.Name, object.Spec.Selector.MatchLabels, pods)
				}
			}
		})
	}
}

// checkSelected fails the test unless a selector selects pods of the same file.
func checkSelected(t *testing.T, name string, selector map[string]string, pods []map[string]string) {
	t.Helper()
	for _, labels := range pods {
		if len(selector) > 0 && selects(selector, labels) {
			return
		}
	}
	t.Errorf("%s selects no pod: %v", name, selector)
}

// withoutLeader leaves out the label that the program sets on the leader's pod.
func withoutLeader(selector map[string]string) map[string]string {
	rest := maps.Clone(selector)
	maps.DeleteFunc(rest, func(key, value string) bool { return strings.HasPrefix(key, "tenure.dev/leads-") && value == "true" })
	return rest
}

func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func checkDeployment(t *testing.T, deployment *apps.Deployment, objects []meta.Object) {
	t.Helper()
	spec := deployment.Spec.Template.Spec
	checkSelected(t, deployment.Name, deployment.Spec.Selector.MatchLabels, []map[string]string{deployment.Spec.Template.Labels})
	labels := spec.ServiceAccountName != "" // its program labels the leader's pod
	if token := spec.AutomountServiceAccountToken; token == nil || *token != labels {
		t.Error("the pod has a service account's token, which it does not need, or has none")
	}
	if labels {
		checkAccount(t, spec.ServiceAccountName, objects)
	}
	// The default of --stop-timeout, the longest lease by default, and 2 s.
	if grace := spec.TerminationGracePeriodSeconds; grace == nil || *grace < 22 {
		t.Error("the pod may be killed before the node has left")
	}
	if pod := spec.SecurityContext; pod == nil || pod.RunAsNonRoot == nil || !*pod.RunAsNonRoot || pod.RunAsUser == nil || *pod.RunAsUser == 0 ||
		pod.SeccompProfile == nil || pod.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Error("the pod may run as root or without seccomp")
	}
	run := 0
	for _, container := range append(spec.InitContainers, spec.Containers...) {
		checkContainer(t, &container)
		if words := commandOf(&container); len(words) > 1 && filepath.Base(words[0]) == "tenure" {
			run++
			checkCommand(t, container.Name, words)
			checkNode(t, &container, strings.Contains(strings.Join(words, " "), "--listen 0.0.0.0:"))
		} else if labels {
			run++
			checkNode(t, &container, true)
		}
	}
	if run != 1 {
		t.Errorf("%d containers run a node", run)
	}
}

// checkAccount checks that a service account may do what the labels need, and nothing else.
func checkAccount(t *testing.T, account string, objects []meta.Object) {
	t.Helper()
	var roles []string
	for _, object := range objects {
		if binding, ok := object.(*rbac.RoleBinding); ok && len(binding.Subjects) == 1 && binding.RoleRef.Kind == "Role" &&
			binding.Subjects[0] == (rbac.Subject{Kind: "ServiceAccount", Name: account}) {
			roles = append(roles, binding.RoleRef.Name)
		}
	}
	needed := rbac.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "patch"}}
	for _, object := range objects {
		if role, ok := object.(*rbac.Role); ok && slices.Equal(roles, []string{role.Name}) && reflect.DeepEqual(role.Rules, []rbac.PolicyRule{needed}) {
			return
		}
	}
	t.Errorf("the roles %v of the service account %s do not allow exactly to list and patch pods", roles, account)
}

// commandOf is a container's command line. The image of the program begins with it.
func commandOf(container *core.Container) []string {
	words := append(append([]string{}, container.Command...), container.Args...)
	if len(container.Command) == 0 && strings.Contains(container.Image, "/tenure:") {
		words = append([]string{"/tenure"}, words...)
	}
	return words
}

// checkContainer checks what goes for every container.
func checkContainer(t *testing.T, container *core.Container) {
	t.Helper()
	if _, tag, found := strings.Cut(container.Image, ":"); !found || tag == "latest" {
		t.Errorf("%s: the image %q has no version", container.Name, container.Image)
	}
	limits := container.SecurityContext
	if limits == nil || limits.AllowPrivilegeEscalation == nil || *limits.AllowPrivilegeEscalation ||
		limits.ReadOnlyRootFilesystem == nil || !*limits.ReadOnlyRootFilesystem ||
		limits.Capabilities == nil || len(limits.Capabilities.Drop) != 1 || limits.Capabilities.Drop[0] != "ALL" {
		t.Errorf("%s: it may do more than it needs", container.Name)
	}
	if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Memory().IsZero() {
		t.Errorf("%s: its memory has no bounds", container.Name)
	}
	ports := map[string]bool{}
	for _, port := range container.Ports {
		ports[port.Name] = true
	}
	for _, probe := range probesOf(container) {
		switch {
		case probe.HTTPGet != nil && !ports[probe.HTTPGet.Port.StrVal]:
			t.Errorf("%s: a probe asks the port %s, which it does not have", container.Name, probe.HTTPGet.Port.StrVal)
		case probe.Exec != nil:
			checkCommand(t, container.Name, probe.Exec.Command)
		}
	}
	if container.Lifecycle != nil && container.Lifecycle.PreStop != nil {
		checkCommand(t, container.Name, container.Lifecycle.PreStop.Exec.Command)
	}
}

func probesOf(container *core.Container) []*core.Probe {
	var probes []*core.Probe
	for _, probe := range []*core.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		if probe != nil {
			probes = append(probes, probe)
		}
	}
	return probes
}

// checkNode checks a container that runs a node. Its port is shared if other machines
// reach it.
func checkNode(t *testing.T, container *core.Container, shared bool) {
	t.Helper()
	if container.LivenessProbe == nil {
		t.Errorf("%s: nothing detects that it hangs", container.Name)
	}
	variables := map[string]*core.EnvVarSource{}
	for _, variable := range container.Env {
		variables[variable.Name] = variable.ValueFrom
	}
	if from := variables["TENURE_DSN"]; from == nil || from.SecretKeyRef == nil {
		t.Errorf("%s: the connection string is no secret", container.Name)
	}
	if from := variables["TENURE_NODE_NAME"]; from == nil || from.FieldRef == nil || from.FieldRef.FieldPath != "metadata.name" {
		t.Errorf("%s: the node is not called like its pod", container.Name)
	}
	for _, probe := range probesOf(container) {
		if probe.HTTPGet != nil && !shared {
			t.Errorf("%s: Kubernetes cannot reach the loopback interface of the pod", container.Name)
		}
	}
}

// TestFaultsInManifestsAreFound: what strictness is for.
func TestFaultsInManifestsAreFound(t *testing.T) {
	for name, document := range map[string]string{
		"unknown field": "apiVersion: v1\nkind: Service\nspec:\n  selectors: {a: b}\n",
		"wrong type":    "apiVersion: apps/v1\nkind: Deployment\nspec:\n  replicas: two\n",
		"key twice":     "apiVersion: v1\nkind: Service\nspec: {}\nspec: {}\n",
		"unknown kind":  "apiVersion: v1\nkind: Servise\n",
		"old version":   "apiVersion: extensions/v1beta1\nkind: Deployment\n",
	} {
		if object, err := decode([]byte(document)); err == nil {
			t.Errorf("%s is not found: %v", name, object)
		}
	}
}
