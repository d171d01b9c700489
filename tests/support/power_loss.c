/* Record which content of a folder's files would survive a power loss.
 *
 * Loaded with LD_PRELOAD, this library replaces fsync and fdatasync. For a file in the folder
 * POWER_LOSS_FOLDER, each call copies the content of that moment to POWER_LOSS_RECORD/durable,
 * under the same name, after eight bytes with the file's inode number. The copy appears atomically
 * before the call returns. A synchronised folder makes the creation and deletion of its files
 * durable: an unknown file gets an empty copy, and the copy of a deleted file disappears.
 *
 * Nothing else makes anything durable: no sync_file_range, no time, and no rename without an fsync
 * under the new name. The real functions are not called, because the machine keeps its power.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* As long as a hard disk takes: otherwise a kill would seldom come between write and fsync. */
enum { DELAY_MICROSECONDS = 10000 };

static void fail(const char *step) {
    fprintf(stderr, "power_loss: cannot %s: %s\n", step, strerror(errno));
    abort();
}

static void join(char *path, const char *folder, const char *name) {
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        fail("join a path");
    }
}

static int is_shared_memory(const char *name) {
    size_t length = strlen(name);
    return length >= 4 && strcmp(name + length - 4, "-shm") == 0;
}

/* Return 1 and the path relative to the watched folder, or 0 for any other file. */
static int find_name(int descriptor, char *name) {
    const char *folder = getenv("POWER_LOSS_FOLDER");
    char link[64];
    char path[PATH_MAX];
    if (folder == NULL) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = '\0';
    size_t prefix = strlen(folder);
    if (strncmp(path, folder, prefix) != 0) return 0;
    if (path[prefix] == '\0') {
        strcpy(name, ".");
        return 1;
    }
    if (path[prefix] != '/') return 0;
    strcpy(name, path + prefix + 1);
    return 1;
}

static void write_all(int target, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t count = write(target, bytes, length);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail("write a copy");
        bytes += count;
        length -= count;
    }
}

/* Copy through the caller's descriptor: if this process opened SQLite's file again and closed it,
 * SQLite would lose its locks. Only a file that is open for writing alone is opened again. */
static void copy_content(int descriptor, int target) {
    static __thread char buffer[1 << 16];
    int source = descriptor;
    if ((fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_WRONLY) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        source = open(link, O_RDONLY | O_CLOEXEC);
        if (source < 0) fail("open a file for reading");
    }
    off_t position = 0;
    for (;;) {
        ssize_t count = pread(source, buffer, sizeof buffer, position);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail("read a file");
        if (count == 0) break;
        write_all(target, buffer, count);
        position += count;
    }
    if (source != descriptor) close(source);
}

/* Publish a copy under this name; without a descriptor, the copy of an empty file. */
static void publish(const char *record, const char *name, ino_t inode, int descriptor, int delay) {
    char durable[PATH_MAX];
    char path[PATH_MAX];
    char temporary[PATH_MAX];
    char unique[64];
    uint64_t header = inode;
    snprintf(unique, sizeof unique, "copy.%d", (int)getpid());
    join(temporary, record, unique);
    join(durable, record, "durable");
    join(path, durable, name);
    int target = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (target < 0) fail("create a copy");
    write_all(target, (const char *)&header, sizeof header);
    if (descriptor >= 0) copy_content(descriptor, target);
    close(target);
    if (delay) usleep(DELAY_MICROSECONDS);
    if (rename(temporary, path) != 0) fail("publish a copy");
}

static int has_copy(const char *path, ino_t inode) {
    uint64_t header = 0;
    int copy = open(path, O_RDONLY | O_CLOEXEC);
    if (copy < 0) return 0;
    ssize_t length = read(copy, &header, sizeof header);
    close(copy);
    return length == sizeof header && header == (uint64_t)inode;
}

static void record_creations(const char *record, const char *name, const char *copies) {
    char folder[PATH_MAX];
    join(folder, getenv("POWER_LOSS_FOLDER"), name);
    DIR *files = opendir(folder);
    if (files == NULL) fail("list a folder");
    for (struct dirent *entry; (entry = readdir(files)) != NULL;) {
        char file[PATH_MAX];
        char copy[PATH_MAX];
        char inner[PATH_MAX];
        struct stat status;
        join(file, folder, entry->d_name);
        join(copy, copies, entry->d_name);
        join(inner, name, entry->d_name);
        if (is_shared_memory(entry->d_name) || lstat(file, &status) != 0) continue;
        if (S_ISREG(status.st_mode) && !has_copy(copy, status.st_ino))
            publish(record, inner, status.st_ino, -1, 0);
    }
    closedir(files);
}

static void record_deletions(const char *name, const char *copies) {
    char folder[PATH_MAX];
    join(folder, getenv("POWER_LOSS_FOLDER"), name);
    DIR *files = opendir(copies);
    if (files == NULL) fail("list the copies");
    for (struct dirent *entry; (entry = readdir(files)) != NULL;) {
        char file[PATH_MAX];
        char copy[PATH_MAX];
        struct stat status;
        join(file, folder, entry->d_name);
        join(copy, copies, entry->d_name);
        if (lstat(file, &status) != 0 && errno == ENOENT) unlink(copy);
    }
    closedir(files);
}

static void record_folder(const char *record, const char *name) {
    char durable[PATH_MAX];
    char copies[PATH_MAX];
    join(durable, record, "durable");
    join(copies, durable, name);
    record_creations(record, name, copies);
    record_deletions(name, copies);
}

/* One synchronisation at a time, over all processes: an older copy never replaces a newer one. */
static int take_lock(const char *record) {
    char path[PATH_MAX];
    join(path, record, "lock");
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock < 0) fail("open the lock");
    while (flock(lock, LOCK_EX) != 0)
        if (errno != EINTR) fail("take the lock");
    return lock;
}

static int synchronise(int descriptor, int delay) {
    char name[PATH_MAX];
    struct stat status;
    const char *record = getenv("POWER_LOSS_RECORD");
    if (fstat(descriptor, &status) != 0) return -1;
    if (record == NULL || !find_name(descriptor, name)) return 0;
    int lock = take_lock(record);
    if (S_ISDIR(status.st_mode))
        record_folder(record, name);
    else if (S_ISREG(status.st_mode) && status.st_nlink > 0 && !is_shared_memory(name))
        publish(record, name, status.st_ino, descriptor, delay);
    close(lock);
    return 0;
}

/* PostgreSQL calls fsync a thousand times when it starts; logs are written with fdatasync. */
int fsync(int descriptor) { return synchronise(descriptor, 0); }

int fdatasync(int descriptor) { return synchronise(descriptor, 1); }
