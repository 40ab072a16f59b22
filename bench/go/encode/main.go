// Encode reads pods as JSON, one per line, and writes each as protobuf to a file: its length in four bytes (big endian), then the
// message. The bench server uses them for its protobuf responses.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: encode FILE <PODS")
		os.Exit(2)
	}
	if err := encode(os.Stdin, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "encode:", err)
		os.Exit(1)
	}
}

func encode(pods io.Reader, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	decoder, messages := json.NewDecoder(bufio.NewReaderSize(pods, 1<<20)), bufio.NewWriterSize(file, 1<<20)
	// An unknown field would be lost, and the two encodings would differ.
	decoder.DisallowUnknownFields()
	for number := 0; ; number++ {
		var pod corev1.Pod
		if err := decoder.Decode(&pod); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("pod %d: %w", number, err)
		}
		message, err := pod.Marshal()
		if err != nil {
			return fmt.Errorf("pod %d: %w", number, err)
		}
		// Flush returns an earlier error of a write.
		messages.Write(binary.BigEndian.AppendUint32(nil, uint32(len(message))))
		messages.Write(message)
	}
	if err := messages.Flush(); err != nil {
		return err
	}
	return file.Close()
}
