package sidecar

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/exactly-one/tenure/internal/docpage"
)

// The page has every path, answer and object of the API's description.
func TestReferenceHasTheDescription(t *testing.T) {
	t.Parallel()
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString("## Paths\n\n" + doc.Info.Description + "\n\n")
	for _, tag := range doc.Tags {
		for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
			operations := doc.Paths.Value(path).Operations()
			for _, method := range slices.Sorted(maps.Keys(operations)) {
				if operation := operations[method]; slices.Contains(operation.Tags, tag.Name) {
					page.WriteString(operationText(method, path, operation))
				}
			}
		}
	}
	page.WriteString("## Objects\n\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		page.WriteString("### " + name + "\n\n" + schemaText(doc.Components.Schemas[name].Value))
	}
	if err := docpage.CheckReference("../../../docs/reference/http.md", page.String()); err != nil {
		t.Error(err)
	}
}

// operationText is the section of one method of a path.
func operationText(method, path string, operation *openapi3.Operation) string {
	text := "### " + method + " " + path + "\n\n" + operation.Summary + "."
	if operation.Description != "" {
		text += " " + operation.Description
	}
	if operation.Security != nil && len(*operation.Security) > 0 {
		text += " Needs the token."
	}
	text += "\n\n"
	if len(operation.Parameters) > 0 {
		text += docpage.Head("parameter", "in", "meaning")
		for _, p := range operation.Parameters {
			text += docpage.Row(docpage.Code(p.Value.Name), p.Value.In, p.Value.Description)
		}
		text += "\n"
	}
	if operation.RequestBody != nil {
		text += "Body: " + contentText(operation.RequestBody.Value.Content) + "\n\n"
	}
	text += docpage.Head("status", "body", "meaning")
	responses := operation.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		text += docpage.Row(status, contentText(responses[status].Value.Content), *responses[status].Value.Description)
	}
	return text + "\n"
}

// contentText names the objects of a body.
func contentText(content openapi3.Content) string {
	var names []string
	for _, kind := range slices.Sorted(maps.Keys(content)) {
		name := docpage.Code(kind)
		if kind == "application/json" && content[kind].Schema != nil {
			name = typeText(content[kind].Schema)
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// schemaText is the table of an object's fields.
func schemaText(schema *openapi3.Schema) string {
	if len(schema.Properties) == 0 {
		return "No fields.\n\n"
	}
	text := docpage.Head("field", "type", "meaning")
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field := schema.Properties[name]
		meaning := ""
		if field.Ref == "" {
			meaning = field.Value.Description
		}
		if !slices.Contains(schema.Required, name) {
			meaning = strings.TrimSpace(meaning + " Optional.")
		}
		text += docpage.Row(docpage.Code(name), typeText(field), meaning)
	}
	return text + "\n"
}

// typeText is the type of a value, with a link if it is an object of the page.
func typeText(ref *openapi3.SchemaRef) string {
	if name, ok := strings.CutPrefix(ref.Ref, "#/components/schemas/"); ok {
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	}
	schema := ref.Value
	for _, choices := range []openapi3.SchemaRefs{schema.OneOf, schema.AnyOf} {
		if len(choices) > 0 {
			var all []string
			for _, choice := range choices {
				all = append(all, typeText(choice))
			}
			return strings.Join(all, " or ")
		}
	}
	if len(schema.Enum) > 0 {
		var all []string
		for _, value := range schema.Enum {
			all = append(all, fmt.Sprint(value))
		}
		return docpage.Code(all...)
	}
	name := strings.Join(schema.Type.Slice(), " or ")
	switch {
	case schema.Items != nil:
		return name + " of " + typeText(schema.Items)
	case len(schema.Properties) > 0:
		return name + " of " + docpage.Code(slices.Sorted(maps.Keys(schema.Properties))...)
	case schema.Format != "":
		return name + " (" + schema.Format + ")"
	case schema.Const != nil:
		return docpage.Code(fmt.Sprint(schema.Const))
	}
	return name
}
