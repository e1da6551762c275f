// Reads cases as JSON from the standard input and says of each, on a line of its own, "ok" or what is wrong.
//
// All that is checked is checked by golang.org/x/mod: the notes by sumdb/note, the proofs by sumdb/tlog. What is
// written here only takes checkpoints and receipts apart into what those functions are given.
package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type testCase struct {
	Keys   []string // verifier keys
	Old    string   // a signed checkpoint, and ...
	New    string   // ... one that is to go on from it, as ...
	Proof  []string // ... these hashes show, in base64
	Record string   // the hash of a record, in base64, that ...
	File   string   // ... this tlog-proof is a receipt of
}

func main() {
	var cases []testCase
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	for _, each := range cases {
		if err := check(each); err != nil {
			fmt.Println(strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println("ok")
		}
	}
}

func check(c testCase) error {
	var keys []note.Verifier
	for _, text := range c.Keys {
		key, err := note.NewVerifier(text)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	known := note.VerifierList(keys...)
	if c.File != "" {
		return checkReceipt(c, known)
	}
	size, root, err := open(c.New, known)
	if err != nil || c.Old == "" {
		return err
	}
	oldSize, oldRoot, err := open(c.Old, known)
	if err != nil {
		return err
	}
	var proof tlog.TreeProof
	for _, text := range c.Proof {
		hash, err := tlog.ParseHash(text)
		if err != nil {
			return err
		}
		proof = append(proof, hash)
	}
	return tlog.CheckTree(proof, size, root, oldSize, oldRoot)
}

// open checks a note and takes the three lines of a checkpoint out of it.
func open(text string, known note.Verifiers) (int64, tlog.Hash, error) {
	opened, err := note.Open([]byte(text), known)
	if err != nil {
		return 0, tlog.Hash{}, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 || lines[0] != opened.Sigs[0].Name {
		return 0, tlog.Hash{}, errors.New("not a checkpoint of the log that signed it")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return 0, tlog.Hash{}, err
	}
	root, err := tlog.ParseHash(lines[2])
	return size, root, err
}

func checkReceipt(c testCase, known note.Verifiers) error {
	above, below, _ := strings.Cut(c.File, "\n\n")
	size, root, err := open(below, known)
	if err != nil {
		return err
	}
	lines := strings.Split(above, "\n")
	if len(lines) < 3 || lines[0] != "c2sp.org/tlog-proof@v1" || !strings.HasPrefix(lines[1], "extra ") {
		return errors.New("not a tlog-proof with extra data")
	}
	index, err := strconv.ParseInt(strings.TrimPrefix(lines[2], "index "), 10, 64)
	if err != nil {
		return err
	}
	var proof tlog.RecordProof
	for _, text := range lines[3:] {
		hash, err := tlog.ParseHash(text)
		if err != nil {
			return err
		}
		proof = append(proof, hash)
	}
	record, err := base64.StdEncoding.DecodeString(c.Record)
	if err != nil {
		return err
	}
	return tlog.CheckRecord(proof, size, root, index, tlog.RecordHash(record))
}
