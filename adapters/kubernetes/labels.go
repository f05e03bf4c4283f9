package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exactly-one/tenure"
)

// labelValue is the value of the label.
const labelValue = "true"

// claim removes the label from all other pods, and then sets it on this one: a Service
// has no two leaders for long. A failed removal does not prevent the setting: the Service
// would have no leader.
func (l *Labeler) claim(ctx context.Context, term *tenure.Term) error {
	failed := l.removeFromOthers(ctx, term)
	if !term.Valid() {
		return errors.Join(failed, tenure.ErrTermEnded)
	}
	return errors.Join(failed, l.patch(ctx, l.config.Pod, labelValue))
}

// removeFromOthers removes the label from all other pods of candidates. After its end, a
// term removes no label.
func (l *Labeler) removeFromOthers(ctx context.Context, term *tenure.Term) error {
	limited, cancel := context.WithTimeout(ctx, l.config.RequestTimeout)
	defer cancel()
	selector := l.config.Selector + "," + l.config.Label + "=" + labelValue
	pods, err := l.config.Pods.List(limited, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("list the pods of %s: %w", selector, err)
	}
	var all []error
	for i := range pods.Items {
		name := pods.Items[i].Name
		if name == l.config.Pod || !term.Valid() {
			continue
		}
		l.log.Info("removing the label of a former leader", "pod", name, "term", term.Number())
		all = append(all, l.remove(ctx, name))
	}
	return errors.Join(all...)
}

// remove removes the label from a pod. The pod may have no label or not exist.
func (l *Labeler) remove(ctx context.Context, pod string) error {
	err := l.patch(ctx, pod, nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// patch sets the label of a pod, or removes it if the value is nil.
func (l *Labeler) patch(ctx context.Context, pod string, value any) error {
	content, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{l.config.Label: value}}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.config.RequestTimeout)
	defer cancel()
	if _, err := l.config.Pods.Patch(ctx, pod, types.MergePatchType, content, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("label the pod %s: %w", pod, err)
	}
	return nil
}
