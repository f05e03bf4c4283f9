package kubernetes_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// api is an API server with some pods, which knows the verbs list and patch.
type api struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	pods     map[string]map[string]string // their labels
	failing  bool
	stalled  chan struct{} // requests wait until it is closed, unless nil
	requests int
	verbs    map[string]bool
}

// newAPI starts an API server with pods that are labeled app=billing.
func newAPI(t *testing.T, pods ...string) *api {
	t.Helper()
	a := &api{t: t, pods: map[string]map[string]string{}, verbs: map[string]bool{}}
	for _, name := range pods {
		a.pods[name] = map[string]string{"app": "billing"}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/default/pods", a.list)
	mux.HandleFunc("PATCH /api/v1/namespaces/default/pods/{name}", a.patch)
	a.Server = httptest.NewServer(a.faulty(mux))
	t.Cleanup(func() {
		a.fail(false)
		a.Close()
	})
	return a
}

// client returns a client for the pods.
func (a *api) client() corev1.PodInterface {
	a.t.Helper()
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: a.URL, QPS: -1})
	if err != nil {
		a.t.Fatal(err)
	}
	return clients.CoreV1().Pods(metav1.NamespaceDefault)
}

// faulty counts requests, and lets them fail or wait.
func (a *api) faulty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a.mu.Lock()
		a.requests++
		a.verbs[req.Method] = true
		failing, stalled := a.failing, a.stalled
		a.mu.Unlock()
		if stalled != nil {
			select {
			case <-stalled:
			case <-req.Context().Done():
				return
			}
		}
		if failing {
			http.Error(w, "etcd has no leader", http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(w, req)
	})
}

func (a *api) list(w http.ResponseWriter, req *http.Request) {
	selector, err := labels.Parse(req.URL.Query().Get("labelSelector"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	list := v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for name, set := range a.pods {
		if selector.Matches(labels.Set(set)) {
			list.Items = append(list.Items, v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(set)}})
		}
	}
	a.answer(w, http.StatusOK, list)
}

func (a *api) patch(w http.ResponseWriter, req *http.Request) {
	var change struct {
		Metadata struct{ Labels map[string]*string }
	}
	name := path.Base(req.URL.Path)
	a.mu.Lock()
	defer a.mu.Unlock()
	set := a.pods[name]
	switch err := json.NewDecoder(req.Body).Decode(&change); {
	case err != nil || req.Header.Get("Content-Type") != "application/merge-patch+json":
		a.t.Errorf("a patch of %s, %s: %v", name, req.Header.Get("Content-Type"), err)
		return
	case set == nil:
		a.answer(w, http.StatusNotFound, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
		})
		return
	}
	for key, value := range change.Metadata.Labels {
		if value == nil {
			delete(set, key)
		} else {
			set[key] = *value
		}
	}
	a.answer(w, http.StatusOK, v1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(set)},
	})
}

func (a *api) answer(w http.ResponseWriter, status int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		a.t.Log("the client left: ", err)
	}
}

// fail lets requests fail from now on, or not.
func (a *api) fail(failing bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failing = failing
	if a.stalled != nil {
		close(a.stalled)
		a.stalled = nil
	}
}

// stall lets requests wait until fail is called.
func (a *api) stall() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stalled = make(chan struct{})
}

// set changes the label of a pod as someone else would.
func (a *api) set(pod, label string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods[pod][label] = "true"
}

// labeled lists the pods with the label.
func (a *api) labeled() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var names []string
	for name, set := range a.pods {
		if set["tenure.dev/leads-billing"] == "true" {
			names = append(names, name)
		}
	}
	return slices.Sorted(slices.Values(names))
}

func (a *api) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests
}
