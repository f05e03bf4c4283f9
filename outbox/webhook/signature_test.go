package webhook

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

// The values are those of the reference libraries of Standard Webhooks.
func TestSignatureMatchesTheStandardsExample(t *testing.T) {
	t.Parallel()
	secret, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signed %s, want %s", got, want)
	}
}

func TestVerifyRejectsInvalidRequests(t *testing.T) {
	t.Parallel()
	old, _ := NewSecret()
	next, _ := NewSecret()
	foreign, _ := NewSecret()
	now := time.Unix(1_800_000_000, 0)
	body := []byte(`{"amount":1}`)
	signed := func(secrets ...Secret) http.Header {
		header := http.Header{}
		sign(header, "id-1", now, body, secrets)
		return header
	}
	with := func(header http.Header, name, value string) http.Header {
		header.Set(name, value)
		return header
	}
	for name, test := range map[string]struct {
		header  http.Header
		body    string
		at      time.Time
		secrets []Secret
		ok      bool
	}{
		"signed":                          {signed(old), string(body), now, []Secret{old}, true},
		"sender changes over first":       {signed(next, old), string(body), now, []Secret{old}, true},
		"receiver changes over first":     {signed(old), string(body), now, []Secret{next, old}, true},
		"within the window":               {signed(old), string(body), now.Add(5 * time.Minute), []Secret{old}, true},
		"the sender's clock is ahead":     {signed(old), string(body), now.Add(-5 * time.Minute), []Secret{old}, true},
		"replayed later":                  {signed(old), string(body), now.Add(5*time.Minute + time.Second), []Secret{old}, false},
		"from the future":                 {signed(old), string(body), now.Add(-5*time.Minute - time.Second), []Secret{old}, false},
		"another body":                    {signed(old), `{"amount":2}`, now, []Secret{old}, false},
		"another id":                      {with(signed(old), HeaderID, "id-2"), string(body), now, []Secret{old}, false},
		"another timestamp":               {with(signed(old), HeaderTimestamp, fmt.Sprint(now.Unix()+1)), string(body), now, []Secret{old}, false},
		"no timestamp":                    {with(signed(old), HeaderTimestamp, ""), string(body), now, []Secret{old}, false},
		"not signed":                      {signed(), string(body), now, []Secret{old}, false},
		"signed by another":               {signed(foreign), string(body), now, []Secret{old, next}, false},
		"nothing to verify with":          {signed(old), string(body), now, nil, false},
		"an empty secret accepts nothing": {signed(Secret{}), string(body), now, []Secret{{}}, false},
		"the right one comes too late": {
			with(signed(old), HeaderSignature, strings.Repeat("v1,x ", 16)+signed(old).Get(HeaderSignature)), string(body), now, []Secret{old}, false,
		},
	} {
		err := verify(test.header, []byte(test.body), test.at, test.secrets)
		if (err == nil) != test.ok || err != nil && !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A request that is sent again is accepted for 5 minutes.
func TestReplayedRequestIsRejectedAfterFiveMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		secret, _ := NewSecret()
		header, body := http.Header{}, []byte(`{"amount":1}`)
		sign(header, "id-1", time.Now(), body, []Secret{secret})
		time.Sleep(5 * time.Minute)
		if err := Verify(header, body, secret); err != nil {
			t.Errorf("the replay after 5 minutes: %v, want it accepted", err)
		}
		time.Sleep(time.Second)
		if err := Verify(header, body, secret); !errors.Is(err, ErrSignature) {
			t.Errorf("the replay after 5 minutes and a second: %v, want ErrSignature", err)
		}
	})
}

func TestInvalidSecretsAreRejected(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "whsec_", "whsec_***", "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 23)),
		base64.StdEncoding.EncodeToString(make([]byte, 65)),
	} {
		_, err := ParseSecret(text)
		if !errors.Is(err, tenure.ErrInvalidConfig) || text != "" && text != secretPrefix && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	secret, text := NewSecret()
	if again, err := ParseSecret(text); err != nil || !bytes.Equal(again.key, secret.key) {
		t.Fatalf("ParseSecret of a new secret returns another secret: %v", err)
	}
	numbers := fmt.Sprintf("%d", secret.key)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		shown := fmt.Sprintf(format, secret) + fmt.Sprintf(format, Config{Secrets: []Secret{secret}})
		if strings.Contains(shown, strings.TrimPrefix(text, secretPrefix)) || strings.Contains(shown, numbers) ||
			strings.Contains(shown, fmt.Sprintf("%#v", secret.key)) {
			t.Errorf("%s shows the secret: %s", format, shown)
		}
	}
}

func TestRetryAfterFormats(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for value, want := range map[string]time.Duration{
		"0": 0, "120": 2 * time.Minute, now.Add(time.Hour).UTC().Format(http.TimeFormat): time.Hour,
		now.Add(-time.Hour).UTC().Format(http.TimeFormat): 0, "9223372036854775807": (1 << 31) * time.Second,
		"": -1, "soon": -1, "-1": -1,
	} {
		got, ok := retryAfter(value, now)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q is read as %v, %v; want %v", value, got, ok, want)
		}
	}
}
