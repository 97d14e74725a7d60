/* A store of numbers: block N of the disk has N. With `careless`, it acknowledges a number before it flushes it; with
 * `torn`, a record of two pages has no checksum; with `recovers`, the check writes. Prints the report. Exit code 0: held. */
#include "drivelab_crash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 4096
#define NUMBERS 12

static void must(drivelab_crash *disk, int result)
{
    if (result < 0) {
        fprintf(stderr, "error: %s\n", drivelab_crash_error(disk));
        exit(1);
    }
}

static void program(drivelab_crash *disk, const char *mode)
{
    unsigned char block[2 * BLOCK];
    char token[16];
    int careless = strcmp(mode, "careless") == 0;

    for (int number = 1; number <= NUMBERS; number++) {
        memset(block, number, sizeof block);
        snprintf(token, sizeof token, "%d", number);
        if (strcmp(mode, "torn") == 0) {
            must(disk, drivelab_crash_pwrite(disk, block, sizeof block, 0));
            must(disk, drivelab_crash_flush(disk));
            continue;
        }
        must(disk, drivelab_crash_begin(disk, token));
        int write = drivelab_crash_begin_pwrite(disk, block, BLOCK, (uint64_t)number * BLOCK);
        must(disk, write);
        must(disk, drivelab_crash_complete(disk, write));
        if (!careless)
            must(disk, drivelab_crash_flush(disk));
        must(disk, drivelab_crash_ack(disk, token));
    }
    must(disk, drivelab_crash_pwrite_fua(disk, "end", 3, 0x40000));
    must(disk, drivelab_crash_trim(disk, 0x50000, BLOCK));
    must(disk, drivelab_crash_flush(disk));
}

static void check(drivelab_crash *disk, const char *mode)
{
    unsigned char block[2 * BLOCK];
    char text[64];

    if (strcmp(mode, "torn") == 0) {
        must(disk, drivelab_crash_pread(disk, block, sizeof block, 0));
        if (block[0] != block[BLOCK])
            must(disk, drivelab_crash_fail(disk, "corrupt: a mixed record"));
        return;
    }
    for (size_t index = 0; index < drivelab_crash_acks(disk); index++) {
        int number = atoi(drivelab_crash_acked(disk, index));
        must(disk, drivelab_crash_pread(disk, block, BLOCK, (uint64_t)number * BLOCK));
        if (block[0] != number) {
            snprintf(text, sizeof text, "lost %d", number);
            must(disk, drivelab_crash_fail(disk, text));
            return;
        }
    }
    /* A check may write: the image is its own. */
    memset(block, 0xff, sizeof block);
    must(disk, drivelab_crash_pwrite(disk, block, BLOCK, BLOCK));
    must(disk, drivelab_crash_flush(disk));
}

int main(int argc, char **argv)
{
    const char *drive = argc > 1 ? argv[1] : "950pro-256";
    const char *mode = argc > 2 ? argv[2] : "careful";
    char error[1024];
    int images = 0, next;

    drivelab_crash *disk = drivelab_crash_open(drive, 1 << 20, error, sizeof error);
    if (disk == NULL) {
        fprintf(stderr, "error: %s\n", error);
        return 2;
    }
    program(disk, mode);
    if (argc > 3)
        must(disk, drivelab_crash_save(disk, argv[3]));
    if (drivelab_crash_held(disk) != -1 || drivelab_crash_fail(disk, "lost") != -1)
        return 1;
    while ((next = drivelab_crash_next_image(disk)) == 1) {
        images++;
        if (drivelab_crash_image(disk) == NULL || drivelab_crash_ack(disk, "late") != -1)
            return 1;
        check(disk, mode);
    }
    must(disk, next);
    printf("%s\n%d images\n", drivelab_crash_report(disk), images);
    int held = drivelab_crash_held(disk);
    drivelab_crash_close(disk);

    /* A search that is not finished is closed. */
    disk = drivelab_crash_open("worst-ssd", 1 << 20, NULL, 0);
    must(disk, drivelab_crash_limit(disk, 100));
    program(disk, "careful");
    must(disk, drivelab_crash_next_image(disk));
    drivelab_crash_close(disk);
    drivelab_crash_close(NULL);
    return held == 1 ? 0 : 3;
}
