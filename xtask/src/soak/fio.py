"""Client of the soak: fio writes over NBD and verifies.

fio.py SOCKET NOTES SEED check|work

A phase is a run of fio that writes one region at random, four or more in flight, and flushes; it is acknowledged when fio
succeeds. Each phase has its own pattern. The check lets fio verify every region whose last phase succeeded. If the last phase of
a region was interrupted, the region may hold any data. Lines on standard output have the format of records.py.
"""
import json, os, random, subprocess, sys

REGIONS, STRIDE, SIZE = 8, 7 << 20, 1 << 20
path, notes_path, seed, what = sys.argv[1:]
# Phases, and of each region the phase, block size and depth that succeeded last.
notes = {"phases": 0, "regions": {}}
if os.path.exists(notes_path):
    notes = json.load(open(notes_path))

def say(*words):
    print(*words, flush=True)

def job(region, phase, size):
    return [
        f"--name=region-{region}-phase-{phase}", f"--offset={region * STRIDE}", f"--size={SIZE}", f"--bs={size}",
        f"--verify_pattern=0x{0x5a000000 + phase:08x}%o",
    ]

def fio(jobs, *common):
    command = [
        "fio", "--thread", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={path}", "--verify=pattern", "--verify_fatal=1", "--verify_state_save=0",
        *common, *[word for one in jobs for word in job(*one)],
    ]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    told = [it for it in (ended.stderr + ended.stdout).splitlines() if "verify" in it or "err" in it.lower()]
    return ended.returncode == 0, "; ".join(told[:2])[:300]

def check():
    jobs = [(int(region), phase, size) for region, (phase, size) in sorted(notes["regions"].items())]
    good, told = fio(jobs, "--rw=read", "--iodepth=4") if jobs else (True, "")
    if not good:
        say(f"LOST {told}")
        return False
    say(f"CHECKED {len(notes['regions'])} regions of {notes['phases']} phases")
    return True

def save():
    with open(notes_path + ".new", "w") as file:
        json.dump(notes, file)
    os.replace(notes_path + ".new", notes_path)

def work():
    choose = random.Random(f"{seed} {notes['phases']}")
    errors = 0
    while errors < 3:
        region = choose.randrange(REGIONS)
        size = choose.choice([4096, 4096, 16384, 65536])
        notes["phases"] += 1
        notes["regions"].pop(str(region), None)
        save()
        depth = choose.choice([1, 4, 16])
        good, told = fio([(region, notes["phases"], size)], "--rw=randwrite", f"--iodepth={depth}", "--do_verify=0", "--end_fsync=1")
        if good:
            notes["regions"][str(region)] = [notes["phases"], size]
            save()
            say("ACK", notes["phases"])
        else:
            errors += 1
            say("ERROR", told or "fio failed")
    say("GONE")

if check() and what == "work":
    work()
