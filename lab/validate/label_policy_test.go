package validate

import (
	"maps"
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	admission "k8s.io/api/admissionregistration/v1"
)

// object is a part of a Kubernetes object as expressions see it.
type object = map[string]any

// TestLabelPolicyPermitsNothingButTheLabel: the service account that labels the leader's
// pod could otherwise change the image of any pod.
func TestLabelPolicyPermitsNothingButTheLabel(t *testing.T) {
	var policy *admission.ValidatingAdmissionPolicy
	bound := false
	for _, o := range readManifests(t)["leader-label.yaml"] {
		switch o := o.(type) {
		case *admission.ValidatingAdmissionPolicy:
			policy = o
		case *admission.ValidatingAdmissionPolicyBinding:
			bound = o.Spec.PolicyName == "billing-leader-label"
		}
	}
	if policy == nil || !bound {
		t.Fatal("the manifest has no policy, or none that is bound")
	}
	pod := func(image string, labels, annotations object) object {
		metadata := object{"name": "billing-1"}
		if labels != nil {
			metadata["labels"] = labels
		}
		if annotations != nil {
			metadata["annotations"] = annotations
		}
		return object{"metadata": metadata, "spec": object{"containers": []any{object{"name": "billing", "image": image}}}}
	}
	const image = "registry.example.com/billing:1.0.0"
	app := object{"app.kubernetes.io/name": "billing"}
	with := func(key, value string) object {
		labels := maps.Clone(app)
		labels[key] = value
		return labels
	}
	leads := with("tenure.dev/leads-billing", "true")
	for name, c := range map[string]struct {
		before, after object
		want          bool
	}{
		"the label is set":            {pod(image, app, nil), pod(image, leads, nil), true},
		"the label is removed":        {pod(image, leads, nil), pod(image, app, nil), true},
		"the first label":             {pod(image, nil, nil), pod(image, object{"tenure.dev/leads-billing": "true"}, nil), true},
		"another image":               {pod(image, app, nil), pod("registry.example.com/evil:1", leads, nil), false},
		"another label":               {pod(image, app, nil), pod(image, with("app", "x"), nil), false},
		"another value of a label":    {pod(image, app, nil), pod(image, with("app.kubernetes.io/name", "x"), nil), false},
		"a label is removed":          {pod(image, with("app", "x"), nil), pod(image, leads, nil), false},
		"an annotation":               {pod(image, app, nil), pod(image, leads, object{"a": "b"}), false},
		"a label of another role":     {pod(image, app, nil), pod(image, with("tenure.dev/leads-other", "true"), nil), false},
		"annotations that stay as is": {pod(image, app, object{"a": "b"}), pod(image, leads, object{"a": "b"}), true},
	} {
		if got := permitted(t, policy, c.before, c.after); got != c.want {
			t.Errorf("%s: permitted %t, want %t", name, got, c.want)
		}
	}
	for user, want := range map[string]bool{
		"system:serviceaccount:shop:billing": true, "system:serviceaccount:other:billing": false, "system:serviceaccount:shop:web": false, "anna": false,
	} {
		request := object{"namespace": "shop", "userInfo": object{"username": user}}
		if got := evaluate(t, policy.Spec.MatchConditions[0].Expression, object{"request": request}) == types.True; got != want {
			t.Errorf("the policy is for %s: %t, want %t", user, got, want)
		}
	}
}

// permitted evaluates all expressions of a policy for a change of an object.
func permitted(t *testing.T, policy *admission.ValidatingAdmissionPolicy, before, after object) bool {
	t.Helper()
	input := object{"object": after, "oldObject": before}
	variables := object{}
	for _, v := range policy.Spec.Variables {
		variables[v.Name] = evaluate(t, v.Expression, input)
	}
	input["variables"] = variables
	for _, v := range policy.Spec.Validations {
		if evaluate(t, v.Expression, input) != types.True {
			return false
		}
	}
	return true
}

// evaluate evaluates an expression of the Common Expression Language.
func evaluate(t *testing.T, expression string, input object) any {
	t.Helper()
	var options []cel.EnvOption
	for name := range input {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	environment, err := cel.NewEnv(options...)
	if err != nil {
		t.Fatal(err)
	}
	compiled, issues := environment.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := environment.Program(compiled)
	if err != nil {
		t.Fatal(err)
	}
	result, _, err := program.Eval(input)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return result
}
