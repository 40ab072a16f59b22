package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
)

// wire counts client-go's requests. client-go falls back to lists and JSON without an error, and the figures would then have the wrong
// name.
type wire struct {
	contentType          string
	next                 http.RoundTripper
	lists, watches, odds atomic.Int64
}

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	w.next = next
	return w
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), w.contentType) {
		w.odds.Add(1)
	}
	if request.URL.Query().Get("watch") == "true" {
		w.watches.Add(1)
	} else {
		w.lists.Add(1)
	}
	return response, nil
}

func (w *wire) requests() int64 { return w.lists.Load() + w.watches.Load() }

// check fails if client-go did not use the expected requests.
func (w *wire) check(streamed bool) error {
	if w.odds.Load() > 0 {
		return fmt.Errorf("the server did not answer in %s", w.contentType)
	}
	if streamed && w.lists.Load() > 0 {
		return errors.New("client-go fell back from a stream to a list")
	}
	if !streamed && w.lists.Load() == 0 {
		return errors.New("client-go made no list")
	}
	return nil
}
