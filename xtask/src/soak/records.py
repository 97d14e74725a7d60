"""Client of the soak: records written over NBD (libnbd), each acknowledged once it must survive.

records.py SOCKET NOTES SEED check|work

First checks that all data that the notes list as durable are present, then (`work`) writes until the server is gone. Lines on standard output: `CHECKED n`,
`LOST what`, `ACK n`, `ERROR what`, `GONE`.

A transaction is one to three extents of blocks. It is acknowledged after the flush that follows its last write, or without
one if all of its writes had force unit access. Some extents are written as zeroes. Every sector of 512 bytes holds its own
number and the generation of its extent, so a sector may be of any generation from the acknowledged one to the last one sent.
The check reads everything twice, which must agree, and flushes: what it has read may not change any more.
"""
import collections, errno, json, os, random, struct, sys, time
import nbd

AREAS, AREA_STRIDE, AREA_BLOCKS = 4, 16 << 20, 512
BLOCKS = AREAS * AREA_BLOCKS
BLOCK, SECTOR = 4096, 512
WRITERS = 6
path, notes_path, seed, what = sys.argv[1:]

def offset(block):
    return block // AREA_BLOCKS * AREA_STRIDE + block % AREA_BLOCKS * BLOCK

def stamp(sector, generation):
    return struct.pack("<QQ", sector, generation) * (SECTOR // 16)

def content(block, generation):
    first = offset(block) // SECTOR
    return b"".join(stamp(first + at, generation) for at in range(BLOCK // SECTOR))

class Notes:
    """State of each block: the acknowledged generation, the last one sent, and those sent as zeroes since."""
    def __init__(self):
        self.acknowledged, self.sent = [0] * BLOCKS, [0] * BLOCKS
        self.zeroes = collections.defaultdict(list)
        self.generation = self.transactions = 0
        if os.path.exists(notes_path):
            kept = json.load(open(notes_path))
            self.acknowledged, self.sent = kept["acknowledged"], kept["sent"]
            self.zeroes.update((int(block), list_) for block, list_ in kept["zeroes"].items())
            self.generation, self.transactions = kept["generation"], kept["transactions"]

    def save(self):
        text = json.dumps({
            "acknowledged": self.acknowledged, "sent": self.sent, "zeroes": self.zeroes,
            "generation": self.generation, "transactions": self.transactions,
        })
        with open(notes_path + ".new", "w") as file:
            file.write(text)
        os.replace(notes_path + ".new", notes_path)

    def found(self, block, data):
        """The least and the greatest generation of the block's sectors, or what is wrong with them."""
        generations, low, high = [], self.acknowledged[block], self.sent[block]
        first = offset(block) // SECTOR
        for at in range(BLOCK // SECTOR):
            sector = data[at * SECTOR:(at + 1) * SECTOR]
            number, generation = struct.unpack_from("<QQ", sector)
            if not any(sector):
                fitting = [it for it in self.zeroes[block] if low <= it <= high]
                if low == 0:
                    fitting.append(0)
                if not fitting:
                    return None, f"sector {first + at} is zero, acknowledged was generation {low}"
                generation = max(fitting)
            elif sector != stamp(number, generation):
                return None, f"sector {first + at} is torn"
            elif number != first + at:
                return None, f"sector {first + at} has the data of sector {number}"
            elif not low <= generation <= high:
                return None, f"sector {first + at} has generation {generation}, acknowledged was {low}, last sent {high}"
            generations.append(generation)
        return (min(generations), max(generations)), None

def say(*words):
    print(*words, flush=True)

def check(h, notes):
    lost, found = [], {}
    piece = 16
    passes = [{}, {}]
    for seen in passes:
        for block in range(0, BLOCKS, piece):
            try:
                data = h.pread(piece * BLOCK, offset(block))
            except nbd.Error as error:
                lost.append(f"blocks {block} to {block + piece - 1} cannot be read: {error.string}")
                continue
            for at in range(piece):
                seen[block + at] = bytes(data[at * BLOCK:(at + 1) * BLOCK])
    for block, data in passes[0].items():
        again = passes[1].get(block, data)
        if again != data:
            lost.append(f"block {block}: two reads differ")
            continue
        found[block], wrong = notes.found(block, data)
        if wrong:
            lost.append(f"block {block}: {wrong}")
    promised = sum(it > 0 for it in notes.acknowledged)
    if lost:
        say(f"LOST {len(lost)} of {promised} blocks, such as: " + "; ".join(lost[:4]))
        return False
    h.flush()
    for block in passes[0]:
        # What was in flight when the server ended has come or has not: nothing changes now until it is written again.
        notes.acknowledged[block], notes.sent[block] = found[block]
    say(f"CHECKED {promised} blocks of {notes.transactions} transactions")
    return True

class Writer:
    """One transaction after another, on blocks that no other writer has."""
    def __init__(self, h, notes, choose, busy):
        self.h, self.notes, self.choose, self.busy = h, notes, choose, busy
        self.blocks, self.waits, self.failed, self.flush = {}, 0, None, False

    def begin(self):
        self.blocks, self.failed = {}, None
        forced = self.choose.random() < 0.25
        extents = []
        for _ in range(self.choose.choice([1, 1, 2, 3])):
            length = self.choose.choice([1, 1, 1, 2, 4, 8, 16, 32])
            block = self.choose.randrange(BLOCKS)
            length = min(length, AREA_BLOCKS - block % AREA_BLOCKS)
            extent = range(block, block + length)
            if not self.busy.isdisjoint(extent):
                continue
            self.busy.update(extent)
            self.notes.generation += 1
            extents.append((extent, self.notes.generation, self.choose.random() < 0.1))
        for extent, generation, zero in extents:
            for block in extent:
                self.blocks[block] = generation
                self.notes.sent[block] = generation
                if zero:
                    self.notes.zeroes[block].append(generation)
        self.waits = len(extents)
        then = self.commit if forced else self.written
        for extent, generation, zero in extents:
            self.send(extent, generation, zero, forced, then)
        return bool(extents)

    def send(self, extent, generation, zero, forced, then):
        flags = nbd.CMD_FLAG_FUA if forced else 0
        at, size = offset(extent[0]), len(extent) * BLOCK
        if zero:
            self.h.aio_zero(size, at, lambda error: self.done(error, "zero", then), flags)
            return
        data = bytearray(b"".join(content(block, generation) for block in extent))
        self.h.aio_pwrite(nbd.Buffer.from_bytearray(data), at, lambda error: self.done(error, "write", then), flags)

    def done(self, error, name, then):
        if error.value:
            self.failed = f"{name}: {os.strerror(error.value)}"
        self.waits -= 1
        if self.waits == 0:
            then()
        return 1

    def written(self):
        if self.failed:
            self.end()
            return
        self.waits = 1
        self.flush = True

    def commit(self):
        if not self.failed:
            for block, generation in self.blocks.items():
                self.notes.acknowledged[block] = generation
                self.notes.zeroes[block] = [it for it in self.notes.zeroes[block] if it >= generation]
            self.notes.transactions += 1
            say("ACK", self.notes.transactions)
        self.end()

    def end(self):
        self.busy.difference_update(self.blocks)
        self.blocks = {}

def work(h, notes):
    choose = random.Random(f"{seed} {notes.generation}")
    busy, errors = set(), 0
    writers = [Writer(h, notes, choose, busy) for _ in range(WRITERS)]
    try:
        while errors < 200:
            for writer in writers:
                if writer.failed and not writer.blocks:
                    if not h.aio_is_ready() and not h.aio_is_processing():
                        raise nbd.Error("gone", errno.ESHUTDOWN)
                    errors += 1
                    say("ERROR", writer.failed)
                    writer.failed = None
                    time.sleep(0.05)
                if writer.flush:
                    # Callbacks may not send commands themselves.
                    writer.flush = False
                    h.aio_flush(lambda error, writer=writer: writer.done(error, "flush", writer.commit))
                elif not writer.blocks:
                    writer.begin()
            if h.poll(10000) == 0:
                say("ERROR nothing is answered for 10 s")
                errors += 50
    except nbd.Error:
        pass
    say("GONE")

notes = Notes()
h = nbd.NBD()
h.connect_unix(path)
try:
    if check(h, notes) and what == "work":
        work(h, notes)
except nbd.Error as error:
    say("ERROR", error.string)
finally:
    notes.save()
