;; Calls itself endlessly.
(component
  (import "holdfast:batch/types@1.0.0" (instance $types
    (type $file-type (record
      (field "name" string) (field "size" u64) (field "blake3" string) (field "stored" string)))
    (export "file" (type (eq $file-type)))))
  (alias export $types "file" (type $file))
  (import "holdfast:batch/host@1.0.0" (instance $host
    (export "write" (func (param "bytes" (list u8))))
    (export "read" (func (param "max" u32) (result (result (list u8) (error string)))))))
  (core module $memory-module
    (memory (export "memory") 2)
    ;; Everything that is handed in goes to one place: it is not looked at.
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65536)))
  (core instance $memory (instantiate $memory-module))
  (alias core export $memory "memory" (core memory $bytes))
  (alias core export $memory "realloc" (core func $realloc))
  (core func $write (canon lower (func $host "write") (memory $bytes)))
  (core module $program-module
    (import "memory" "memory" (memory 2))
    (import "host" "write" (func $write (param i32 i32)))
    (data (i32.const 64) "Calls itself endlessly.")
    (func (export "describe") (result i32)
      (i32.store (i32.const 0) (i32.const 64))
      (i32.store (i32.const 4) (i32.const 23))
      (i32.const 0))
    (func (export "begin") (param i32 i32 i64 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 16))
    (func $deeper (param i64) (result i64)
      (i64.add (i64.const 1) (call $deeper (i64.add (local.get 0) (i64.const 1)))))
    (func (export "more") (param i32 i32) (result i32)
      (drop (call $deeper (i64.const 0)))
      (i32.const 16))
    (func (export "end") (result i32) (i32.const 16)))
  (core instance $program (instantiate $program-module
    (with "memory" (instance $memory))
    (with "host" (instance (export "write" (func $write))))))
  (type $ended (result (error string)))
  (func $describe (result string)
    (canon lift (core func $program "describe") (memory $bytes)))
  (func $begin (param "file" $file) (param "arguments" (list (tuple string string))) (result $ended)
    (canon lift (core func $program "begin") (memory $bytes) (realloc $realloc)))
  (func $more (param "bytes" (list u8)) (result $ended)
    (canon lift (core func $program "more") (memory $bytes) (realloc $realloc)))
  (func $end (result $ended)
    (canon lift (core func $program "end") (memory $bytes)))
  (instance $bytes-job
    (export "describe" (func $describe)) (export "begin" (func $begin))
    (export "more" (func $more)) (export "end" (func $end)))
  (export "holdfast:batch/bytes@1.0.0" (instance $bytes-job)))
