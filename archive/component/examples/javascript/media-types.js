// Counts the pages of an archive by media type: a line `TYPE TAB NUMBER` for each, over all files.
//
// Shows how counts of single files become one result: `end` writes those of a file, `reduce` adds them up.

import { http, read, write } from 'holdfast:batch/host@1.0.0';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

// Each file has an instance of its own: this map is empty when a file begins.
let counts = new Map();

const add = (type, number) => counts.set(type, (counts.get(type) ?? 0) + number);

function writeCounts() {
    const types = [...counts.keys()].sort();
    write(encoder.encode(types.map((type) => `${type}\t${counts.get(type)}\n`).join('')));
}

export const records = {
    describe() {
        return 'Counts responses by media type. No arguments.';
    },

    begin(file, args) {
        if (args.length > 0) {
            // What is thrown is the error that people read. Without a string it would be none.
            throw `there is no argument ${args[0][0]}`;
        }
    },

    record(record) {
        if (record.kind !== 'response') return;
        const message = http();
        if (message === undefined) return;
        const field = message.fields.find(([name]) => name.toLowerCase() === 'content-type');
        add(field ? field[1].split(';')[0].trim().toLowerCase() : '-', 1);
    },

    end() {
        writeCounts();
    },
};

export const reducer = {
    reduce(args) {
        let rest = '';
        for (;;) {
            const bytes = read(0);
            rest += decoder.decode(bytes, { stream: bytes.length > 0 });
            const lines = rest.split('\n');
            rest = lines.pop();
            for (const line of lines) {
                const [type, number] = line.split('\t');
                add(type, Number(number));
            }
            if (bytes.length === 0) break;
        }
        writeCounts();
    },
};
