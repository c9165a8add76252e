/* All words below are written in composed form and in one case each, so that bytes alone decide whether two names are
 * the same, whatever a server does to them; tests/unit/test_names.c holds them to it. */
#include "seed/names.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "drive/model.h"
#include "drive/path.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *const subjects[] = {"Annual Report",
                                       "Budget",
                                       "Invoice",
                                       "Contract",
                                       "Meeting Notes",
                                       "Minutes",
                                       "Agenda",
                                       "Proposal",
                                       "Offer",
                                       "Order",
                                       "Delivery Note",
                                       "Price List",
                                       "Customer List",
                                       "Project Plan",
                                       "Roadmap",
                                       "Timeline",
                                       "Risk Register",
                                       "Requirements",
                                       "Specification",
                                       "Design Draft",
                                       "Mockup",
                                       "Wireframe",
                                       "Logo",
                                       "Banner",
                                       "Brochure",
                                       "Flyer",
                                       "Newsletter",
                                       "Press Release",
                                       "Photo",
                                       "Scan",
                                       "Screenshot",
                                       "Drawing",
                                       "Floor Plan",
                                       "Site Visit",
                                       "Inspection",
                                       "Checklist",
                                       "Handbook",
                                       "Manual",
                                       "Training",
                                       "Slides",
                                       "Presentation",
                                       "Keynote",
                                       "Thesis",
                                       "Essay",
                                       "Chapter",
                                       "Letter",
                                       "CV",
                                       "Application",
                                       "Payslip",
                                       "Timesheet",
                                       "Expenses",
                                       "Receipt",
                                       "Tax Return",
                                       "Bank Statement",
                                       "Insurance",
                                       "Lease",
                                       "Permit",
                                       "Certificate",
                                       "Inventory",
                                       "Stock Count",
                                       "Forecast",
                                       "Sales Figures",
                                       "Survey Results",
                                       "Interview",
                                       "Transcript",
                                       "Backup",
                                       "Export",
                                       "Import",
                                       "Dump",
                                       "Config",
                                       "README",
                                       "Changelog",
                                       "Release Notes",
                                       "Test Plan",
                                       "Bug List",
                                       "Recipe",
                                       "Shopping List",
                                       "Travel Plan",
                                       "Itinerary",
                                       "Tickets",
                                       "Map",
                                       "Playlist",
                                       "Family Tree",
                                       "Wedding",
                                       "Birthday",
                                       "Holiday",
                                       "Garden",
                                       "Kitchen",
                                       "Bike",
                                       "Car Repair",
                                       "Q&A",
                                       "R&D Summary",
                                       "Don't Panic",
                                       "100% Final",
                                       "a+b Analysis",
                                       "Draft [internal]",
                                       "To-Do",
                                       "Read me first",
                                       "e-mail archive",
                                       "Lessons Learned",
                                       "Board Pack",
                                       "NDA",
                                       "SLA",
                                       "KPI Dashboard",
                                       "Org Chart",
                                       "Onboarding",
                                       "Exit Interview",
                                       "Job Description",
                                       "Salary Bands"};
static const char *const folders[] = {"Documents",    "Projects",  "Archive",     "Clients",    "Suppliers",
                                      "Accounting",   "Finance",   "HR",          "Legal",      "Marketing",
                                      "Sales",        "Support",   "Engineering", "Design",     "Research",
                                      "Photos",       "Videos",    "Music",       "Templates",  "Shared",
                                      "Private",      "Inbox",     "Outbox",      "Drafts",     "Final",
                                      "Old",          "Misc",      "Backups",     "Exports",    "Reports",
                                      "Invoices",     "Contracts", "Meetings",    "Events",     "Travel",
                                      "Training",     "Personal",  "Team",        "Board",      "Audit",
                                      "Tax",          "Payroll",   "Assets",      "Brand",      "Website",
                                      "Social Media", "Campaigns", "Tenders",     "Offers",     "Orders",
                                      "Deliveries",   "Warehouse", "Production",  "Quality",    "Maintenance",
                                      "IT",           "Licences",  "Manuals",     "Source",     "Releases",
                                      "Screenshots",  "Scans",     "To Sort",     "New folder", "Do not delete",
                                      "_archive",     "#urgent",   "R & D",       "@home",      "~work in progress",
                                      "v1",           "v2",        "Jan",         "Feb",        "March",
                                      "Spring",       "Summer",    "Autumn",      "Winter"};
static const char *const foreign[] = {"Übersicht Verträge",
                                      "Gehaltsabrechnung",
                                      "Straßenplan",
                                      "Prüfbericht",
                                      "Küche",
                                      "Größenliste",
                                      "Résumé",
                                      "Contrat signé",
                                      "Présentation générale",
                                      "Relevé de notes",
                                      "Été à Nîmes",
                                      "Garçon et naïveté",
                                      "Informe año nuevo",
                                      "Señalización",
                                      "Presupuesto",
                                      "Canción",
                                      "Relatório de avaliação",
                                      "Orçamento",
                                      "Informação",
                                      "Årsredovisning",
                                      "Möte i Malmö",
                                      "Räkning",
                                      "Smørrebrød",
                                      "Måned for måned",
                                      "Zażółć gęślą jaźń",
                                      "Umowa najmu",
                                      "Faktura",
                                      "Příliš žluťoučký kůň",
                                      "Smlouva",
                                      "Szerződés",
                                      "Árajánlat",
                                      "Özgeçmiş",
                                      "İstanbul gezisi",
                                      "Raporu güncelle",
                                      "Отчёт за квартал",
                                      "Договор",
                                      "Фотографии",
                                      "Смета на ремонт",
                                      "Протокол встречи",
                                      "Звіт",
                                      "Ελληνικό συμβόλαιο",
                                      "Αναφορά",
                                      "Φωτογραφίες",
                                      "年度报告",
                                      "合同",
                                      "会议记录",
                                      "预算表",
                                      "家庭照片",
                                      "請求書",
                                      "議事録",
                                      "写真",
                                      "プロジェクト計画",
                                      "カタログ",
                                      "見積書",
                                      "보고서",
                                      "계약서",
                                      "회의록",
                                      "가족 사진",
                                      "تقرير سنوي",
                                      "عقد",
                                      "صور العائلة",
                                      "דוח שנתי",
                                      "חוזה",
                                      "תמונות",
                                      "รายงานประจำปี",
                                      "สัญญา",
                                      "वार्षिक रिपोर्ट",
                                      "अनुबंध",
                                      "Báo cáo",
                                      "Hợp đồng"};
static const char *const emoji[] = {"🎉", "📷", "✅", "🌍", "🚀", "❤️", "🔥", "📁", "👩‍💻", "🇩🇪", "☕", "⭐"};
static const char *const qualifiers[] = {
    "final",  "draft", "copy",      "new",     "old",       "signed",   "v2",     "v3",       "reviewed", "internal",
    "EN",     "DE",    "for print", "low res", "corrected", "approved", "latest", "backup",   "part 1",   "part 2",
    "Müller", "Smith", "Garcia",    "ACME",    "North",     "South",    "HQ",     "2nd floor"};

#define PICK(r, list) (list)[rng_below(r, ARRAY_LEN(list))]
#define TEXT_MAX      1024
#define NUMBER_ROOM   5 /* " 123" and a dot */

/* Shares in percent; what an office has, then what a household has. */
static const struct {
    const char *ext;
    double share;
} extensions[] = {
    {"pdf", 18}, {"docx", 14}, {"xlsx", 12}, {"jpg", 16}, {"png", 9},   {"pptx", 4},  {"txt", 4},   {"csv", 3},
    {"zip", 3},  {"doc", 2},   {"xls", 2},   {"md", 2},   {"eml", 1.5}, {"json", 1},  {"xml", 1},   {"html", 1},
    {"mp4", 1},  {"mov", 0.5}, {"mp3", 1},   {"heic", 1}, {"svg", 0.5}, {"odt", 0.5}, {"log", 0.5}, {"", 1.5},
};

void names_init(struct names *s, size_t expected)
{
    s->n = 0;
    for (s->cap = 16; s->cap < 2 * expected;)
        s->cap *= 2;
    s->taken = mem_zalloc(s->cap * sizeof *s->taken);
}

void names_done(struct names *s)
{
    MEM_FREE(s->taken);
    s->n = s->cap = 0;
}

static uint64_t folded_hash(const char *name)
{
    char folded[TEXT_MAX];
    size_t n = 0;
    for (; name[n] && n < sizeof folded; n++)
        folded[n] = name[n] >= 'A' && name[n] <= 'Z' ? (char)(name[n] + 32) : name[n];
    uint64_t h = hash_bytes(folded, n);
    return h ? h : 1;
}

static bool insert(uint64_t *table, size_t cap, uint64_t h)
{
    size_t i = h & (cap - 1);
    for (; table[i]; i = (i + 1) & (cap - 1)) {
        if (table[i] == h)
            return false;
    }
    table[i] = h;
    return true;
}

/* False when the name, or one that hashes alike, was given before. */
static bool take(struct names *s, const char *name)
{
    if (2 * (s->n + 1) > s->cap) {
        uint64_t *old = s->taken;
        size_t old_cap = s->cap;
        s->taken = mem_zalloc((s->cap *= 2) * sizeof *s->taken);
        for (size_t i = 0; i < old_cap; i++) {
            if (old[i])
                insert(s->taken, s->cap, old[i]);
        }
        mem_free(old);
    }
    if (!insert(s->taken, s->cap, folded_hash(name)))
        return false;
    s->n++;
    return true;
}

static bool chance(struct rng *r, double p)
{
    return rng_unit(r) < p;
}

static void append(char *text, const char *sep, const char *more)
{
    size_t n = strlen(text);
    snprintf(text + n, TEXT_MAX - n, "%s%s", n ? sep : "", more);
}

static void append_date(char *text, const char *sep, struct rng *r)
{
    char date[32];
    unsigned year = 2015 + (unsigned)rng_below(r, 12), month = 1 + (unsigned)rng_below(r, 12);
    unsigned day = 1 + (unsigned)rng_below(r, 28);
    switch (rng_below(r, 4)) {
    case 0:
        snprintf(date, sizeof date, "%u-%02u-%02u", year, month, day);
        break;
    case 1:
        snprintf(date, sizeof date, "%u%02u%02u", year, month, day);
        break;
    case 2:
        snprintf(date, sizeof date, "%u", year);
        break;
    default:
        snprintf(date, sizeof date, "Q%u %u", (month + 2) / 3, year);
    }
    append(text, sep, date);
}

/* Words until nearly max_bytes: the names that a careful person gives to a scan. */
static void lengthen(char *text, struct rng *r, size_t max_bytes)
{
    for (;;) {
        const char *word = chance(r, 0.3) ? PICK(r, foreign) : PICK(r, subjects);
        if (strlen(text) + strlen(word) + 3 > max_bytes)
            return;
        append(text, " - ", word);
    }
}

static void file_stem(char *text, struct rng *r)
{
    static const char *const separators[] = {" ", " ", " ", "_", "-"};
    const char *sep = PICK(r, separators);
    text[0] = '\0';
    if (chance(r, 0.12)) {
        char number[24];
        static const char *const cameras[] = {"IMG_", "DSC", "Scan", "PXL_"};
        snprintf(number, sizeof number, "%s%04u", PICK(r, cameras), (unsigned)rng_below(r, 10000));
        append(text, "", number);
        return;
    }
    if (chance(r, 0.06))
        append(text, sep, PICK(r, emoji));
    append(text, sep, chance(r, 0.22) ? PICK(r, foreign) : PICK(r, subjects));
    if (chance(r, 0.45))
        append_date(text, sep, r);
    if (chance(r, 0.35))
        append(text, sep, PICK(r, qualifiers));
    if (chance(r, 0.03))
        lengthen(text, r, 120 + rng_below(r, 120));
}

static void folder_text(char *text, struct rng *r)
{
    text[0] = '\0';
    if (chance(r, 0.05))
        append(text, " ", PICK(r, emoji));
    if (chance(r, 0.15))
        append_date(text, " ", r);
    append(text, " ", chance(r, 0.2) ? PICK(r, foreign) : PICK(r, folders));
    if (chance(r, 0.25))
        append(text, " ", PICK(r, qualifiers));
    if (chance(r, 0.02))
        lengthen(text, r, 95); /* bytes, so at most 100 characters */
}

/* Gives the first of "stem.ext", "stem 2.ext", … that is free. */
static const char *give(struct names *s, const char *stem, const char *ext, struct arena *mem)
{
    char text[TEXT_MAX + 64];
    for (unsigned i = 1;; i++) {
        int n = snprintf(text, sizeof text, "%s", stem);
        if (i > 1)
            n += snprintf(text + n, sizeof text - (size_t)n, " %u", i);
        snprintf(text + n, sizeof text - (size_t)n, "%s%s", *ext ? "." : "", ext);
        if (take(s, text))
            return arena_strdup(mem, text);
    }
}

const char *names_folder(struct names *s, struct rng *r, struct arena *mem)
{
    char text[TEXT_MAX];
    folder_text(text, r);
    return give(s, text, "", mem);
}

/* A space at the end is no name's end. */
static void cut_stem(char *text, size_t max)
{
    if (strlen(text) <= max)
        return;
    size_t n = utf8_cut(sv_of(text), max);
    while (n > 1 && (text[n - 1] == ' ' || text[n - 1] == '-'))
        n--;
    text[n] = '\0';
}

const char *names_file(struct names *s, struct rng *r, struct arena *mem, size_t max_bytes, const char **ext)
{
    double w[ARRAY_LEN(extensions)];
    char text[TEXT_MAX];
    for (size_t i = 0; i < ARRAY_LEN(extensions); i++)
        w[i] = extensions[i].share;
    *ext = extensions[rng_weighted(r, w, ARRAY_LEN(extensions))].ext;
    file_stem(text, r);
    if (max_bytes)
        cut_stem(text, max_bytes - strlen(*ext) - NUMBER_ROOM);
    return give(s, text, *ext, mem);
}
