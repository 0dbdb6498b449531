/*
 * For commands that are linked statically with glibc. Such a program still loads libraries of the machine where it
 * runs, if /etc/nsswitch.conf names any. They belong to another glibc, so the program may crash. With this object, host
 * names come from /etc/hosts and DNS, users from /etc/passwd, and groups from /etc/group, which need no such library.
 */
#include <nss.h>

__attribute__((constructor)) static void
look_up_without_libraries(void)
{
    __nss_configure_lookup("hosts", "files dns");
    __nss_configure_lookup("passwd", "files");
    __nss_configure_lookup("group", "files");
}
