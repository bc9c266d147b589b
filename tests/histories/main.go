// Checks recorded histories of a server with porcupine, a checker that shares nothing with Zenobe's own.
//
// A history is what concurrent clients asked of a few items, alone and in transactions, and what they were told, while
// the server was killed and started again. All items together are one object, so that the check is of strict
// serialisability: there is an order of all operations, each at some moment between its call and its return, that
// explains every answer. An operation whose answer never came may have happened at any later moment, or never.
//
// Usage: go run . <directory>. Files *.jsonl must be legal; *.wrong.jsonl, made from them by a lie, must not be.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const keysMax = 8
const timeMax = 2 * time.Minute

// An item with one number. Absent items are the zero value.
type item struct {
	exists bool
	number int64
}

// The items by their keys; comparable, so that porcupine can remember states.
type state [keysMax]item

type seen struct {
	Key   int    `json:"key"`
	Value *int64 `json:"value"`
}

func (s seen) item() item {
	if s.Value == nil {
		return item{}
	}
	return item{true, *s.Value}
}

type write struct {
	Key   int    `json:"key"`
	Kind  string `json:"kind"`
	Value int64  `json:"value"`
}

// One line of a history.
type event struct {
	Client     int     `json:"client"`
	Called     int64   `json:"called"`
	Returned   *int64  `json:"returned"`
	Conditions []seen  `json:"conditions"`
	Writes     []write `json:"writes"`
	Before     []seen  `json:"before"`
	After      []seen  `json:"after"`
	Outcome    string  `json:"outcome"`
}

func holds(items state, expected []seen) bool {
	for _, one := range expected {
		if items[one.Key] != one.item() {
			return false
		}
	}
	return true
}

func apply(items state, writes []write) state {
	for _, one := range writes {
		switch one.Kind {
		case "set":
			items[one.Key] = item{true, one.Value}
		case "add":
			items[one.Key] = item{true, items[one.Key].number + one.Value}
		case "delete":
			items[one.Key] = item{}
		default:
			panic("an unknown write: " + one.Kind)
		}
	}
	return items
}

// Whether the event can happen in this state, and the state after it.
func step(before state, happened event) (bool, state) {
	isDone := holds(before, happened.Conditions)
	after := before
	if isDone {
		after = apply(before, happened.Writes)
	}
	switch happened.Outcome {
	case "unknown":
		return true, after
	case "refused":
		return !isDone && holds(before, happened.Before), before
	case "done":
		return isDone && holds(before, happened.Before) && holds(after, happened.After), after
	}
	panic("an unknown outcome: " + happened.Outcome)
}

var model = porcupine.Model{
	Init: func() interface{} { return state{} },
	Step: func(before, input, _ interface{}) (bool, interface{}) {
		fits, after := step(before.(state), input.(event))
		return fits, after
	},
}

func read(path string) ([]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var operations []porcupine.Operation
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var one event
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		returned := int64(math.MaxInt64)
		if one.Returned != nil {
			returned = *one.Returned
		}
		operations = append(operations, porcupine.Operation{
			ClientId: one.Client, Input: one, Call: one.Called, Output: nil, Return: returned,
		})
	}
	return operations, lines.Err()
}

func check(path string) (int, error) {
	operations, err := read(path)
	if err != nil {
		return 0, err
	}
	expected := porcupine.Ok
	if strings.HasSuffix(path, ".wrong.jsonl") {
		expected = porcupine.Illegal
	}
	found := porcupine.CheckOperationsTimeout(model, operations, timeMax)
	if found != expected {
		return 0, fmt.Errorf("%s is %s, but should be %s", path, found, expected)
	}
	return len(operations), nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . <directory of histories>")
		os.Exit(2)
	}
	paths, err := filepath.Glob(filepath.Join(os.Args[1], "*.jsonl"))
	if err != nil || len(paths) == 0 {
		fmt.Fprintf(os.Stderr, "there are no histories in %s; record some with `cargo test -p zenobe-sdk-tests histories`\n", os.Args[1])
		os.Exit(1)
	}
	sort.Strings(paths)
	legal, wrong, operations, failed := 0, 0, 0, false
	for _, path := range paths {
		count, err := check(path)
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
			failed = true
		case strings.HasSuffix(path, ".wrong.jsonl"):
			wrong++
		default:
			legal++
			operations += count
		}
	}
	if legal == 0 || wrong == 0 {
		fmt.Fprintln(os.Stderr, "there must be histories of both kinds")
		failed = true
	}
	if failed {
		os.Exit(1)
	}
	fmt.Printf("porcupine: %d histories of %d operations are serialisable; %d altered ones are not\n", legal, operations, wrong)
}
