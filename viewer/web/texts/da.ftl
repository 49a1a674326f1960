### Sidernes tekster på dansk. Nøglerne er de samme som på engelsk; en test siger, hvilken der mangler.

## Alle sider

archive-name = Holdfast-webarkivet
skip = Gå til indholdet
languages = Sprog
footer = Arkiverede sider vises, som de blev høstet. De kan være ufuldstændige, forældede eller forkerte.
pages = Listens sider
page-next = Næste side
page-previous = Forrige side
page-first = Første side
see-below = Alle adresser, der begynder med denne
see-exact = Versioner af netop denne adresse
in-collection = Samling { $collection }:

## Søgning

search-title = Find arkiverede sider
search-lead = Skriv adressen på en side for at se, hvornår den blev høstet, og hvordan den så ud.
search-url = Adresse
search-match = Find
search-match-exact = denne adresse
search-match-prefix = alle, der begynder med den
search-match-domain = alle på dens domæne
search-collection = Samling
search-button = Søg
search-empty = Skriv en adresse, for eksempel example.org.
search-help-title = Flere adresser på én gang
search-help-star = En stjerne i slutningen finder alle adresser, der begynder sådan:
search-help-domain = En stjerne og et punktum i begyndelsen finder alle adresser på et domæne:

## Kalender

calendar-title = Versioner af { $url }
calendar-heading = Arkiverede versioner
captures = { $count ->
    [one] { $number } version
   *[other] { $number } versioner
}
captures-at-least = { $count ->
    [one] mere end { $number } version
   *[other] mere end { $number } versioner
}
first-capture = Første: { $moment }
last-capture = Seneste: { $moment }
years = År
timeline = Versioner pr. måned, { $first } til { $last }
day-captures = { $count ->
    [one] { $day }: { $number } version
   *[other] { $day }: { $number } versioner
}
list-empty = Intet blev høstet i dette tidsrum.
list-place = { $first } til { $last } af { $number }
calendar-later = Adressen har mere end { $number } versioner. Her er de talt til og med { $moment }.
calendar-on = Fortsæt derfra
calendar-earlier = Versioner før { $moment } er ikke talt med her.
calendar-all = Begynd med den første
times-are-utc = Dage og klokkeslæt er i UTC.

## Adresser, der begynder med en tekst

urls-below = Adresser, der begynder med
urls-of-domain = Adresser på domænet
urls-all = { $count ->
    [one] { $number } adresse
   *[other] { $number } adresser
}
urls-first = { $count ->
    [one] den første adresse; der er flere på næste side
   *[other] de første { $number } adresser; der er flere på næste side
}
urls-next = { $count ->
    [one] { $number } adresse mere; der er flere på næste side
   *[other] { $number } adresser mere; der er flere på næste side
}
urls-rest = { $count ->
    [one] den sidste adresse
   *[other] de sidste { $number } adresser
}

## En version i sin ramme

frame-title = { $url }, { $moment }
frame-label = Arkiveret side, høstet { $moment }
captured = Høstet
captures-nav = Versioner af denne adresse
previous-capture = Forrige
next-capture = Næste
all-captures = Alle versioner
without-scripts = Vis uden scripts

## Problemer

not-found = Ikke fundet
no-page = Der er ikke noget på denne adresse.
no-page-advice = Søg efter en arkiveret side ovenfor.
on-replay-host = Denne vært har sider for mennesker. Opslag og arkiverede filer er på afspilningsværten.
on-replay-host-advice = Spørg dér med den samme sti.
to-replay-host = Den samme sti på afspilningsværten
no-collection = Der er ingen samling »{ $name }«.
no-collection-advice = Vælg en af dem, som søgningen tilbyder.
no-captures = Arkivet har ingen version af denne adresse.
no-captures-below = Arkivet har ingen version af sådan en adresse.
no-captures-advice = Se efter, om adressen er stavet rigtigt, eller søg efter adresser, der begynder på samme måde.
blocked = Ikke tilgængelig for dig
blocked-text = Arkivet har versioner af denne adresse, og dets regler tillader ikke, at de vises her.
blocked-advice = Nogle versioner kan ses på læsesale eller efter en tid. Mener du, at det er en fejl, så spørg dem, der driver arkivet.
bad-address = Adressen kan ikke forstås
bad-time = »{ $digits }« er ikke et tidspunkt.
bad-time-advice = Skriv et år eller flere cifre af år, måned, dag, time, minut og sekund, for eksempel 2020, 20201231 eller 20201231235959.
no-url = Adressen siger ikke, hvilken arkiveret side der menes.
no-url-advice = Skriv sidens adresse til sidst, for eksempel /all/*/example.org, eller søg efter den ovenfor.
url-control = Tegn { $number } i adressen er et styretegn.
url-control-advice = Skriv det med %, eller udelad det.
url-too-long = Adressen er for lang
url-too-long-text = Adresser på arkiverede sider har højst { $number } tegn.
url-too-long-advice = Søg efter begyndelsen af adressen, og vælg den på listen.
not-understood = En del af adressen har en form, der ikke kendes her.
no-list-page = Listen har ikke denne side.
no-list-page-advice = Begynd med dens første side: søg efter adressen ovenfor.
too-much = Der var for mange versioner at se igennem, før en kunne vises.
too-much-advice = Spørg om mindre: en længere adresse eller et år.
bad-method = Ikke tilladt
bad-method-text = Sider kan læses, og intet kan sendes til dem.
not-now = Ikke tilgængelig nu
not-now-advice = Intet er gået tabt. Prøv igen om lidt; bliver det ved, så sig det til dem, der driver arkivet.
busy = Serveren svarer så mange besøgende, som den kan.
out-of-time = Indekset over versioner svarede ikke i tide.
index-down = Indekset over versioner svarer ikke.
index-failed = Indekset over versioner har fejlet; dem, der driver det, skal se på det.
try-again = Prøv igen

## Datoer

date = { $day }. { $month } { $year }
month = { $month } { $year }
moment = { $date } kl. { $time } UTC
month-january = januar
month-february = februar
month-march = marts
month-april = april
month-may = maj
month-june = juni
month-july = juli
month-august = august
month-september = september
month-october = oktober
month-november = november
month-december = december
weekday-monday = mandag
weekday-tuesday = tirsdag
weekday-wednesday = onsdag
weekday-thursday = torsdag
weekday-friday = fredag
weekday-saturday = lørdag
weekday-sunday = søndag
weekday-monday-short = ma
weekday-tuesday-short = ti
weekday-wednesday-short = on
weekday-thursday-short = to
weekday-friday-short = fr
weekday-saturday-short = lø
weekday-sunday-short = sø
