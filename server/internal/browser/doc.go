// Package browser tests the dashboard in a real browser, Chromium, as people use
// it: by mouse and by keyboard, live, with much to show, and with a screen
// reader's eyes. It has nothing but tests.
package browser
