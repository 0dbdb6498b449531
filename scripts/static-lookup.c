/*
 * For commands that are linked statically with glibc. Such a program still loads libraries of the machine that it
 * runs on, if /etc/nsswitch.conf names any: those belong to another glibc, and the program may crash. So host names
 * come from /etc/hosts and DNS, and users from /etc/passwd, which glibc reads by itself.
 */
#include <nss.h>

__attribute__((constructor)) static void
look_up_without_libraries(void)
{
    __nss_configure_lookup("hosts", "files dns");
    __nss_configure_lookup("passwd", "files");
    __nss_configure_lookup("group", "files");
}
