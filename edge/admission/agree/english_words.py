"""English words that say the same in whatever sentence either stands, and the forms of verbs that do.

What differs in degree, time or manner is not here: usually and always, like and love, will and might; nor what has a
second meaning that people use as often: fall, holiday home, lift.
"""

from __future__ import annotations

# The first word stands for the others of its line.
_SAME = """
mother mom mum mommy mama
father dad daddy papa
grandmother grandma granny
grandfather grandpa granddad
children kids
child kid
movie film
movies films
apartment flat
color colour
favorite favourite
organize organise
center centre
theater theatre
neighbor neighbour
neighbors neighbours
gray grey
program programme
fridge refrigerator
tv television
photo photograph
photos photographs
bike bicycle
plane airplane aeroplane
buy purchase
bought purchased
use utilize utilise
large big
start begin
leave depart
often frequently
whole entire
everyone everybody
someone somebody
hi hello
is are am
ok okay
vs versus
in at
choose pick select
chose picked selected
parents folks
maybe perhaps possibly
sick ill
usually normally generally typically
began started
finished completed
fix repair
fixed repaired
trip journey
holiday vacation
shop store
phone telephone
afraid scared frightened
stepdad stepfather
stepmom stepmother
aunt auntie
happy glad
help assist
helped assisted
fix mend
need require
needs requires
got received
pants trousers
taxi cab
highway motorway freeway
petrol gasoline
aubergine eggplant
courgette zucchini
coriander cilantro
baby infant
teenager teen
colleague coworker
colleagues coworkers
roommate flatmate
friend buddy pal
company firm
exam examination
vet veterinarian
delicious tasty
smart clever intelligent
rarely seldom
almost nearly
like enjoy
likes enjoys
liked enjoyed
trouble difficulty
huge enormous
hard difficult
stomach tummy belly
dinner supper
quickly fast
error mistake
errors mistakes
doctor physician
lawyer attorney
couch sofa
trash garbage rubbish
concise brief
answer reply
answers replies
config configuration
repo repository
database db
docs documentation
app application
"""
# Of these "he runs" is "I run", and "is running" what is so: who does it says the subject.
_VERB_LIST = """
live work run use learn study wear take drive write build host play rent plan eat drink smoke go walk read teach own
like love prefer need want know think have sleep cook train start leave end open depart arrive return speak travel
get try expect wait meet buy sell make save listen join keep give send bring see enjoy sing feel say tell ask hold
"""
_VERBS = _VERB_LIST.split()
# Of which the form in -s is a noun as well.
_NOUN_LIST = """
move look visit pay call stay watch practice switch help hope hike swim ride fly paint dance talk turn care search
"""
_DOUBLING = "run plan get swim"
STANDS_FOR = {word: line.split()[0] for line in _SAME.strip().splitlines() for word in line.split()[1:]}
THIRD = {f"{verb}{'es' if verb.endswith(('o', 'ch', 'sh')) else 's'}": verb for verb in _VERBS if verb != "have"}
THIRD |= {"studies": "study", "has": "have", "tries": "try"}
_DOUBLED = _DOUBLING.split()
ING = {f"{verb if verb.endswith('ee') else verb.removesuffix('e')}ing": verb for verb in [*_VERBS, *_NOUN_LIST.split()]}
ING |= {f"{verb}{verb[-1]}ing": verb for verb in _DOUBLED}
