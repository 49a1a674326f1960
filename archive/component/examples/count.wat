;; Counts records: for each file a line `NAME TAB RECORDS`; its reduce step counts the files: `files TAB NUMBER`.
;; With the argument `fail`, whose value is a kind of record, it fails at the records of this kind.
;;
;; A whole component by hand, for tests and for those who want to see what is under the tools of their language. No tool
;; is needed: `holdfast batch` takes this file as it is, and makes the text binary.
;;
;; The three parts: what is imported, two core modules (memory first, so that the host can be given it, then the
;; program), and how the functions of the program become those of `wit/batch.wit`.
(component
  (import "holdfast:batch/types@1.0.0" (instance $types
    (type $file-type (record
      (field "name" string) (field "size" u64) (field "blake3" string) (field "stored" string)))
    (export "file" (type (eq $file-type)))
    (type $record-type (record
      (field "offset" u64) (field "kind" string) (field "url" (option string)) (field "date" (option string))
      (field "id" (option string)) (field "length" (option u64))))
    (export "archive-record" (type (eq $record-type)))))
  (alias export $types "file" (type $file))
  (alias export $types "archive-record" (type $record))
  (import "holdfast:batch/host@1.0.0" (instance $host
    (export "write" (func (param "bytes" (list u8))))
    (export "read" (func (param "max" u32) (result (result (list u8) (error string)))))))

  ;; Memory, and where the host puts what it hands in. What was handed in is forgotten at each `reset`.
  (core module $memory-module
    (memory (export "memory") 1)
    (global $kept (mut i32) (i32.const 4096))
    (global $free (mut i32) (i32.const 4096))
    (func (export "keep") (global.set $kept (global.get $free)))
    (func (export "reset") (global.set $free (global.get $kept)))
    (func (export "realloc") (param $old i32) (param $old-size i32) (param $align i32) (param $size i32) (result i32)
      (local $at i32) (local $pages i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get $size)))
      (local.set $pages
        (i32.sub
          (i32.shr_u (i32.add (global.get $free) (i32.const 65535)) (i32.const 16))
          (memory.size)))
      (if (i32.gt_s (local.get $pages) (i32.const 0))
        (then (if (i32.eq (memory.grow (local.get $pages)) (i32.const -1)) (then (unreachable)))))
      (local.get $at)))
  (core instance $memory (instantiate $memory-module))
  (alias core export $memory "memory" (core memory $bytes))
  (alias core export $memory "realloc" (core func $realloc))
  (core func $write (canon lower (func $host "write") (memory $bytes)))
  (core func $read (canon lower (func $host "read") (memory $bytes) (realloc $realloc)))

  (core module $program-module
    (import "memory" "memory" (memory 1))
    (import "memory" "keep" (func $keep))
    (import "memory" "reset" (func $reset))
    (import "host" "write" (func $write (param i32 i32)))
    ;; How many bytes at most; where the answer goes: 0 or 1 for an error, then at 4 where the bytes are and at 8 how many.
    (import "host" "read" (func $read (param i32 i32)))
    (data (i32.const 64) "Counts records. Argument: fail, a kind of record to fail at.")
    (data (i32.const 128) "this kind fails")
    (data (i32.const 160) "files")
    ;; From 0: what a function answers. From 16: what `read` answered. 200 to 231: a number as text.
    (global $name (mut i32) (i32.const 0))
    (global $name-size (mut i32) (i32.const 0))
    (global $fail (mut i32) (i32.const 0))
    (global $fail-size (mut i32) (i32.const 0))
    (global $count (mut i64) (i64.const 0))

    (func $good (result i32)
      (i32.store8 (i32.const 0) (i32.const 0))
      (i32.const 0))

    ;; Writes a word, TAB, the count and LF.
    (func $line (param $word i32) (param $word-size i32)
      (local $at i32) (local $rest i64)
      (call $write (local.get $word) (local.get $word-size))
      (local.set $at (i32.const 231))
      (i32.store8 (local.get $at) (i32.const 10))
      (local.set $rest (global.get $count))
      (loop $digit
        (local.set $at (i32.sub (local.get $at) (i32.const 1)))
        (i32.store8 (local.get $at)
          (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $rest) (i64.const 10)))))
        (local.set $rest (i64.div_u (local.get $rest) (i64.const 10)))
        (br_if $digit (i64.ne (local.get $rest) (i64.const 0))))
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at) (i32.const 9))
      (call $write (local.get $at) (i32.sub (i32.const 232) (local.get $at))))

    (func (export "describe") (result i32)
      (i32.store (i32.const 0) (i32.const 64))
      (i32.store (i32.const 4) (i32.const 60))
      (i32.const 0))

    ;; name, size, blake3, stored; arguments: each is where the name is, its size, where the value is, its size.
    (func (export "begin")
      (param $name i32) (param $name-size i32) (param i64 i32 i32 i32 i32)
      (param $arguments i32) (param $number i32) (result i32)
      (global.set $name (local.get $name))
      (global.set $name-size (local.get $name-size))
      (if (local.get $number) (then
        (global.set $fail (i32.load offset=8 (local.get $arguments)))
        (global.set $fail-size (i32.load offset=12 (local.get $arguments)))))
      (call $keep)
      (call $good))

    ;; offset, kind, url, date, id, length
    (func (export "record")
      (param i64) (param $kind i32) (param $kind-size i32) (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64)
      (result i32)
      (local $at i32)
      (call $reset)
      (global.set $count (i64.add (global.get $count) (i64.const 1)))
      (if (i32.eq (local.get $kind-size) (global.get $fail-size)) (then
        (block $other
          (loop $next
            (if (i32.lt_u (local.get $at) (local.get $kind-size)) (then
              (br_if $other (i32.ne
                (i32.load8_u (i32.add (local.get $kind) (local.get $at)))
                (i32.load8_u (i32.add (global.get $fail) (local.get $at)))))
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (br $next))))
          (i32.store8 (i32.const 0) (i32.const 1))
          (i32.store (i32.const 4) (i32.const 128))
          (i32.store (i32.const 8) (i32.const 15))
          (return (i32.const 0)))))
      (call $good))

    (func (export "end") (result i32)
      (call $line (global.get $name) (global.get $name-size))
      (call $good))

    (func (export "reduce") (param i32 i32) (result i32)
      (local $at i32) (local $end i32)
      (loop $more
        (call $reset)
        (call $read (i32.const 0) (i32.const 16))
        (if (i32.load8_u (i32.const 16)) (then (unreachable)))
        (local.set $at (i32.load (i32.const 20)))
        (local.set $end (i32.add (local.get $at) (i32.load (i32.const 24))))
        (if (i32.ne (local.get $at) (local.get $end)) (then
          (loop $byte
            (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 10))
              (then (global.set $count (i64.add (global.get $count) (i64.const 1)))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br_if $byte (i32.ne (local.get $at) (local.get $end))))
          (br $more))))
      (call $line (i32.const 160) (i32.const 5))
      (call $good)))
  (core instance $program (instantiate $program-module
    (with "memory" (instance $memory))
    (with "host" (instance (export "write" (func $write)) (export "read" (func $read))))))

  (type $arguments (list (tuple string string)))
  (type $ended (result (error string)))
  (func $describe (result string)
    (canon lift (core func $program "describe") (memory $bytes)))
  (func $begin (param "file" $file) (param "arguments" $arguments) (result $ended)
    (canon lift (core func $program "begin") (memory $bytes) (realloc $realloc)))
  (func $record (param "record" $record) (result $ended)
    (canon lift (core func $program "record") (memory $bytes) (realloc $realloc)))
  (func $end (result $ended)
    (canon lift (core func $program "end") (memory $bytes)))
  (func $reduce (param "arguments" $arguments) (result $ended)
    (canon lift (core func $program "reduce") (memory $bytes) (realloc $realloc)))
  (instance $records
    (export "describe" (func $describe)) (export "begin" (func $begin))
    (export "record" (func $record)) (export "end" (func $end)))
  (export "holdfast:batch/records@1.0.0" (instance $records))
  (instance $reducer (export "reduce" (func $reduce)))
  (export "holdfast:batch/reducer@1.0.0" (instance $reducer)))
