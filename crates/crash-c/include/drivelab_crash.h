/*
 * drivelab_crash.h: crash-consistency tests of C programs that write to a block device or to one large file.
 *
 * A disk in memory behaves as a drive of drivelab's catalogue when power fails. The program writes to it and acknowledges
 * operations. Then drivelab_crash_next_image() returns every image that a power cut can leave, one after the other: the
 * disk has these contents, the check reads them (and may write, such as a recovery), and rejects the image with
 * drivelab_crash_fail(). The report has the smallest failure of each kind.
 *
 *     char error[1024];
 *     int next;
 *     drivelab_crash *disk = drivelab_crash_open("950pro-256", 1 << 20, error, sizeof error);
 *     if (disk == NULL) {
 *         fprintf(stderr, "%s\n", error);
 *         exit(2);
 *     }
 *     drivelab_crash_pwrite(disk, record, sizeof record, 0);
 *     drivelab_crash_flush(disk);
 *     drivelab_crash_ack(disk, "1");
 *     while ((next = drivelab_crash_next_image(disk)) == 1) {
 *         if (drivelab_crash_acks(disk) > 0 && !has_record(disk))
 *             drivelab_crash_fail(disk, "lost 1");
 *     }
 *     puts(next == 0 ? drivelab_crash_report(disk) : drivelab_crash_error(disk));
 *     held = drivelab_crash_held(disk) == 1;
 *     drivelab_crash_close(disk);
 *
 * If the variable DRIVELAB_CRASH names an image, as the report does, next_image returns only this image.
 *
 * Functions that return int return -1 on an error, and drivelab_crash_error() then returns its text. Texts belong to the disk
 * and are valid until the next call of a function of the disk. A disk may be used by one thread at a time.
 *
 * cargo build -p drivelab-crash-c makes libdrivelab_crash.a and libdrivelab_crash.so.
 */
#ifndef DRIVELAB_CRASH_H
#define DRIVELAB_CRASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct drivelab_crash drivelab_crash;

/* Opens an empty disk. `drive` is a name of the catalogue, the path of its TOML file, or "worst-ssd"; `bytes` is a multiple of
 * 512. Returns NULL on an error, whose text is written to `error` if it is not NULL. */
drivelab_crash *drivelab_crash_open(const char *drive, uint64_t bytes, char *error, size_t error_bytes);

/* Frees the disk. NULL is allowed. */
void drivelab_crash_close(drivelab_crash *disk);

/* Reads and writes all bytes. A write is durable after drivelab_crash_flush, with _fua at once. Returns 0. */
int drivelab_crash_pread(drivelab_crash *disk, void *data, size_t bytes, uint64_t offset);
int drivelab_crash_pwrite(drivelab_crash *disk, const void *data, size_t bytes, uint64_t offset);
int drivelab_crash_pwrite_fua(drivelab_crash *disk, const void *data, size_t bytes, uint64_t offset);

/* Sends a write of whole blocks of 512 B that stays in flight until drivelab_crash_complete. Returns its number, 0 or above. */
int drivelab_crash_begin_pwrite(drivelab_crash *disk, const void *data, size_t bytes, uint64_t offset);
int drivelab_crash_complete(drivelab_crash *disk, int write);

/* Makes all completed writes durable. Returns 0. */
int drivelab_crash_flush(drivelab_crash *disk);

/* Deallocates a range of whole blocks of 512 B: it then reads as zeroes. Returns 0. */
int drivelab_crash_trim(drivelab_crash *disk, uint64_t offset, uint64_t bytes);

/* The token must (ack) or may (begin) survive a power cut from now on. Only while the program is recorded. Returns 0. */
int drivelab_crash_ack(drivelab_crash *disk, const char *token);
int drivelab_crash_begin(drivelab_crash *disk, const char *token);

/* Sets the maximum number of images [default: 10000]. Before the first image. Returns 0. */
int drivelab_crash_limit(drivelab_crash *disk, uint64_t images);

/* Writes the recording to a file, for `drivelab crashtest --from`. Ends the recording. Returns 0. */
int drivelab_crash_save(drivelab_crash *disk, const char *path);

/* The disk now has the contents of the next image. The first call ends the recording. The last image has not been rejected
 * if drivelab_crash_fail was not called. An image can come again: failures are repeated and reduced.
 * Returns 1 for an image, 0 after the last one, -1 on an error (the check rejects the image with all that was written). */
int drivelab_crash_next_image(drivelab_crash *disk);

/* Name of the present image, such as "171-2"; NULL if there is none. */
const char *drivelab_crash_image(drivelab_crash *disk);

/* Tokens that were acknowledged before the power cut: their number, and each of them (NULL above the last). */
size_t drivelab_crash_acks(drivelab_crash *disk);
const char *drivelab_crash_acked(drivelab_crash *disk, size_t index);

/* Rejects the present image. The first word is the class: "lost 57", "corrupt: page 3", "unopenable: no header"; other texts
 * violate another rule. Returns 0. */
int drivelab_crash_fail(drivelab_crash *disk, const char *text);

/* After the last image: 1 if no image was rejected, 0 if some were. -1 before. */
int drivelab_crash_held(drivelab_crash *disk);

/* After the last image: the report, or NULL. */
const char *drivelab_crash_report(drivelab_crash *disk);

/* Text of the last error of this disk. */
const char *drivelab_crash_error(drivelab_crash *disk);

#ifdef __cplusplus
}
#endif

#endif
